"""``coevo gateway``."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from coevo.flows.cli.package import AddressOptions
from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.gateway.run_gateway import GatewaySettings


def _finite(minutes: float) -> float:
    if not math.isfinite(minutes):
        raise typer.BadParameter(f"{minutes} is no number of minutes: give one, such as 60")
    return minutes


@dataclass(frozen=True)
class BoundOptions:
    """Bounds of the gateway."""

    mode: Annotated[
        Literal["training", "evaluation"], typer.Option(help="Mode of new sessions; evaluation teaches nothing.")
    ] = "training"
    max_sessions: Annotated[int, typer.Option(min=1, max=10**6, help="Maximum number of open sessions.")] = 4096
    max_memory: Annotated[int, typer.Option(min=2**20, max=2**40, help="Maximum bytes of the open sessions.")] = (
        768 * 2**20
    )
    idle: Annotated[
        float, typer.Option(min=0.01, callback=_finite, help="Minutes after which an unused session is abandoned.")
    ] = 60.0
    max_body: Annotated[int, typer.Option(min=1, max=2**30, help="Maximum bytes per request.")] = 4 * 2**20


@with_option_groups
def gateway(
    what: Annotated[str, typer.Argument(metavar="RUN[@N]|MODEL@ALIAS", help="Revision, or version by its alias.")],
    listen: AddressOptions,
    bounds: BoundOptions,
    train: Annotated[
        bool, typer.Option("--train", help="Continue the run, which learns from the outcomes (rollout.gateway).")
    ] = False,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> int:
    """Serve a policy and its bank to agents with a loop of their own, until interrupted.

    Clients of OpenAI's chat completions and of Anthropic's messages need only a base address, /s/SESSION/v1 or
    /s/SESSION, and the token. Prompts get lessons, and every drawn token is kept until the session's outcome, which
    stores it. With --train the run goes through its iterations meanwhile, as coevo resume does.

    Example: coevo gateway first@40 --port 5006
    """
    from coevo.flows.console.trust_prompt import confirm_run, consent_by, trust_served
    from coevo.flows.gateway.run_gateway import GatewaySettings, gateway_of
    from coevo.flows.packages.serving import Address
    from coevo.tasks.gateway.gateway_session import SessionLimits

    workspace = workspace_at(directory)
    if train and as_json:
        raise CoevoError("--json is for a gateway without --train: `coevo log RUN --json` shows a run that learns")
    if train:
        confirm_run(workspace, what, workspace.existing(what).read_config(), trust)
    else:
        trust_served(workspace, what, trust)
    address = Address(listen.host, listen.port, tuple(listen.allow_host or ()))
    limits = SessionLimits(bounds.max_sessions, bounds.idle * 60, bounds.max_memory)
    settings = GatewaySettings(address, bounds.mode, limits, bounds.max_body)
    if train:
        return _train(workspace, what, settings)
    with gateway_of(what, settings, workspace, consent_by(trust)) as served:
        output.result(
            as_json,
            {"name": served.name, "url": served.url, "token_file": str(served.token_file)},
            f"Gateway of {served.name} at {served.url}/s/SESSION/v1; its token is in {served.token_file}",
            "Stop with Ctrl-C; sessions without an outcome are lost then.",
        )
        served.wait()
    return 0


def _train(workspace: Workspace, run: str, settings: "GatewaySettings") -> int:
    """Continue a run that learns from agents with their own loop."""
    from coevo.flows.gateway.serving_agents import listening_as
    from coevo.flows.start_run import RunOptions, resume_run

    if workspace.existing(run).read_config().rollout.gateway is None:
        raise CoevoError(
            f"{run} plays its own episodes: start a run with rollout.gateway={{outcomes: 64}}, or leave out --train"
        )
    with listening_as(settings):
        return resume_run(run, workspace, RunOptions(alone=True)).code


COMMANDS = (gateway,)
