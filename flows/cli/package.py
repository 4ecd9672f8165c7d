"""``coevo package``, ``coevo export``, ``coevo promote``, ``coevo demote`` and ``coevo serve``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import (
    JsonOption,
    TrustOption,
    WorkspaceOption,
    with_option_groups,
    workspace_at,
    workspace_option,
)
from coevo.flows.endpoint.request_limits import DEFAULT, Limits

VersionArgument = Annotated[str, typer.Argument(metavar="MODEL/VERSION", help="Version, or MODEL@ALIAS.")]


def package(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; by default the last one.")],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Registered model; by default the name of the recipe.")
    ] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Register a revision as the next version of a model in MLflow.

    The package holds policy, bank and settings, and can be served after the run is gone.

    Example: coevo package homerules-coevo-rl-1@40 household
    """
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.packages.make_package import register_revision

    workspace = workspace_at(directory)
    trust_revision(workspace, run, trust, ask=not as_json)
    registered, made = register_revision(run, name, workspace)
    origin = made.origin
    if as_json:
        row = {"model": registered.model, "version": registered.version, "run": origin.run, "revision": origin.revision}
        output.document({**row, "success": dict(origin.success)})
        return
    option = workspace_option(workspace)
    output.line(f"Registered {origin.name} as {registered.name}")
    output.line(f"Serve it with: coevo serve {registered.name}{option}")
    output.line(f"Make it the champion, if it plays better: coevo promote {registered.name}{option}")


def export(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; by default the last one.")],
    target: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty directory.")],
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Write a revision for the tools of others: model or adapters, bank, skill file, model card.

    Transformers loads the directory, or PEFT if the policy has adapters. It is whole or not there.

    Example: coevo export homerules-coevo-rl-1@40 household
    """
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.packages.export import export as write

    workspace = workspace_at(directory)
    trust_revision(workspace, run, trust)
    written = write(run, target, workspace)
    output.result(as_json, {"revision": str(written), "directory": str(target)}, f"Wrote {written} to {target}.")


@dataclass(frozen=True)
class PromotionOptions:
    """``PromotionTerms`` as options; its module takes too long to import for `--help`."""

    panel: Annotated[str | None, typer.Option(help="Held-out panel; by default the first it was evaluated on.")] = None
    tasks: Annotated[int | None, typer.Option(min=2, help="Tasks of the panel; by default as in its evaluations.")] = (
        None
    )
    margin: Annotated[float, typer.Option(help="Margin that the lower bound of the difference must exceed.")] = 0.0
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random draws of both versions.")] = 0


@with_option_groups
def promote(
    version: VersionArgument,
    options: PromotionOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> int:
    """Make a version the champion of its model if it plays better than the current one.

    Both versions play the same held-out tasks with the same random draws. The alias `champion` moves if the 95 %
    interval over tasks of the difference lies above the margin, or if there is no champion; otherwise it stays and the
    exit code is 1. With approval.promotion=person it also stays, until `coevo approve` moves it. A package that this
    workspace has not made is refused until --trust package confirms it.

    Example: coevo promote household/3 --panel seen-houses --margin 0.01
    """
    from coevo.flows.console.trust_prompt import consent_by
    from coevo.flows.packages.promotion import PromotionTerms
    from coevo.flows.packages.promotion import promote as decide

    workspace = workspace_at(directory)
    terms = PromotionTerms(options.panel, options.tasks, options.margin, options.seed)
    done = decide(version, terms, workspace, consent_by(trust, ask=not as_json))
    verdict, over = done.verdict, done.over
    if as_json:
        row = {"model": done.challenger.model, "version": done.challenger.version, "promoted": done.passed}
        row |= {"waiting": True} if done.waits else {}
        judged = {} if verdict is None or over is None else {"against": over.version, **verdict.document()}
        output.document(row | judged)
    else:
        if verdict is not None and over is not None:
            output.line(verdict.sentence(done.challenger.name, over.name))
        stays = f"{over.name if over else ''} stays champion of {done.challenger.model}"
        if done.waits:
            approve = f"coevo approve {done.challenger.name}{workspace_option(workspace)}"
            stays = f"{done.challenger.name} waits for approval as champion: {approve}"
        output.line(f"{done.challenger.name} is champion" if done.passed else stays)
    return int(not done.passed)


def demote(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Registered model.")],
    trust: TrustOption = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Restore the previous champion, with its policy and bank.

    Example: coevo demote household
    """
    from coevo.flows.console.trust_prompt import consent_by
    from coevo.flows.packages.promotion import demote as restore

    champion = restore(model, workspace_at(workspace), consent_by(trust)).name
    output.result(as_json, {"champion": champion}, f"{champion} is champion again")


@dataclass(frozen=True)
class AddressOptions:
    """Address of the server."""

    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port; by default a free one.")] = None
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name that requests may use; repeatable.")
    ] = None


@dataclass(frozen=True)
class LimitOptions:
    """Largest request of the server."""

    max_body: Annotated[int, typer.Option(min=1, max=2**30, help="Maximum bytes per request.")] = DEFAULT.body
    max_rows: Annotated[int, typer.Option(min=1, max=10**5, help="Maximum rows per request.")] = DEFAULT.rows
    max_text: Annotated[int, typer.Option(min=1, max=2**30, help="Maximum bytes of text per row.")] = DEFAULT.text


@with_option_groups
def serve(
    what: Annotated[str, typer.Argument(metavar="RUN[@N]|MODEL@ALIAS", help="Revision, or version by its alias.")],
    listen: AddressOptions,
    maximum: LimitOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Serve a revision or a registered version until interrupted.

    Clients of OpenAI's chat completions use the base address /v1, those of Anthropic's messages the root; MLflow's
    clients send turns of episodes to /invocations. Prompts get lessons from the bank; nothing is kept.

    The server has no password: --host sets which machines can reach it. Requests above a maximum get status 413. A
    registered version that this workspace has not made is refused until --trust package confirms it.

    Example: coevo serve household@champion --port 5005
    """
    from coevo.flows.console.trust_prompt import consent_by, trust_served
    from coevo.flows.packages.serving import Address
    from coevo.flows.packages.serving import serve as serving

    workspace = workspace_at(directory)
    trust_served(workspace, what, trust)
    address = Address(listen.host, listen.port, tuple(listen.allow_host or ()))
    limits = Limits(maximum.max_body, maximum.max_rows, maximum.max_text)
    with serving(what, address, limits, workspace, consent_by(trust)) as served:
        rows, chats = f"{served.url}/invocations", f"{served.url}/v1"
        said = f"Serving {served.name} at {rows} and {chats}; stop with Ctrl-C"
        output.result(as_json, {"name": served.name, "invocations": rows, "v1": chats}, said)
        served.wait()


COMMANDS = (package, export, promote, demote, serve)
