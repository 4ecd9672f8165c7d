"""``coevo package``, ``coevo promote``, ``coevo demote`` and ``coevo serve``."""

from typing import Annotated

import typer

from flows import output
from flows.endpoint.limits import DEFAULT, Limits
from flows.settings import JsonOption, TrustOption, WorkspaceOption, workspace_at

VersionArgument = Annotated[str, typer.Argument(metavar="MODEL/VERSION", help="A version, or MODEL@ALIAS.")]


def package(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, and revision; the last one where none is given.")],
    name: Annotated[str | None, typer.Option(help="Registered model; named as the recipe where none is given.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Register policy, bank and settings of a revision as the next version of a model in MLflow.

    The package is complete: it can be served after the run is gone.

    Example: coevo package homerules-coevo-rl-1@40 --name household
    """
    from flows.package import register_revision
    from flows.trust import trust_revision

    place = workspace_at(workspace)
    trust_revision(place, run, trust, ask=not as_json)
    registered, made = register_revision(run, name, place)
    origin = made.origin
    if as_json:
        row = {"model": registered.model, "version": registered.version, "run": origin.run, "revision": origin.revision}
        output.document({**row, "success": dict(origin.success)})
        return
    output.line(f"{registered.name} is {origin.name}")
    output.line(f"Serve it with: coevo serve {registered.name}")
    output.line(f"Make it the champion, if it plays better: coevo promote {registered.name}")


def promote(
    version: VersionArgument,
    panel: Annotated[str | None, typer.Option(help="Held-out panel; the first of its own evaluations.")] = None,
    tasks: Annotated[int | None, typer.Option(min=2, help="Tasks of the panel; as in its own evaluations.")] = None,
    margin: Annotated[float, typer.Option(help="What the lower bound of the difference has to exceed.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws, which both sides share.")] = 0,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> int:
    """Make a version the champion of its model, if it plays better than the present one.

    Both play the same held-out tasks with the same draws. The alias `champion` moves where the 95 % interval of the
    difference lies above the margin, or where there is no champion; else it stays and the exit code is 1. So it does
    where the recipe says approval.promotion=person: then `coevo approve` moves the alias.

    Example: coevo promote household/3 --panel seen-houses --margin 0.01
    """
    from flows.package import promote as decide

    done = decide(version, panel, tasks, margin, seed, workspace_at(workspace))
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
            stays = (
                f"{done.challenger.name} may be champion and waits for a person: coevo approve {done.challenger.name}"
            )
        output.line(f"{done.challenger.name} is champion" if done.passed else stays)
    return int(not done.passed)


def demote(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Registered model.")], workspace: WorkspaceOption = None
) -> None:
    """Bring back the champion before the present one, which has passed its gate: policy and bank as they were.

    Example: coevo demote household
    """
    from tasks.champion import restore
    from tasks.tracking.store import tracking_store

    output.line(f"{restore(tracking_store(workspace_at(workspace).root), model).name} is champion again")


def serve(
    what: Annotated[str, typer.Argument(metavar="RUN[@N]|MODEL@ALIAS", help="A revision, or a version by its alias.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="A free one where none is given.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Name that requests may give for the server; repeatable.")
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, max=2**30, help="Bytes of a request.")] = DEFAULT.body,
    max_rows: Annotated[int, typer.Option(min=1, max=10**5, help="Rows of a request.")] = DEFAULT.rows,
    max_text: Annotated[int, typer.Option(min=1, max=2**30, help="Bytes of text in a row.")] = DEFAULT.text,
    trust: TrustOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Serve a revision, or a registered version, until it is interrupted.

    The server has no password: other machines reach it where --host says so. Larger requests get 413.

    Example: coevo serve household@champion --port 5005
    """
    from flows.serving import Address
    from flows.serving import serve as serving
    from flows.trust import trust_served

    place = workspace_at(workspace)
    trust_served(place, what, trust)
    address, limits = Address(host, port, tuple(allow_host or ())), Limits(max_body, max_rows, max_text)
    with serving(what, address, limits, place) as served:
        output.line(f"{served.name} answers at {served.url}/invocations until it is interrupted (Ctrl-C)")
        served.wait()


COMMANDS = (package, promote, demote, serve)
