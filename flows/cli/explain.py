"""``coevo explain``: what changed since an earlier revision, and what did it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at

if TYPE_CHECKING:
    from coevo.flows.evaluation.attribution import Cause, Explanation

CAUSES = ("cause", "of", "effect", "beyond_noise", "see")


@dataclass(frozen=True)
class PanelOptions:
    """Panel to play, as options."""

    panel: Annotated[str | None, typer.Option(help="Panel to play; by default the first of the settings.")] = None
    tasks: Annotated[int | None, typer.Option(min=2, help="Tasks of it; by default as in the settings.")] = None


@with_option_groups
def explain(
    run: Annotated[str, typer.Argument(metavar="RUN[@N]", help="Run, or one of its revisions after the first.")],
    played: PanelOptions,
    since: Annotated[int | None, typer.Option(min=0, help="Revision to start from; by default the one before.")] = None,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Split the change of success since an earlier revision into tasks that were drawn, policy and bank.

    The panel is played four times on the same draws: with the policy and the bank of either revision. `effect`: success
    that the new policy, or the new bank, adds, with its 95 % interval over tasks; both together are the whole change on
    the panel. `tasks`: part of the change in training success that comes from the kinds of tasks that were drawn.

    Example: coevo explain homerules-coevo-rl-1@12 --since 8
    """
    from coevo.flows.console.progress import shown
    from coevo.flows.console.trust_prompt import trust_revision
    from coevo.flows.evaluation.attribution import explain as explained
    from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
    from coevo.tasks.publish.reporter import reporting_to

    workspace = workspace_at(directory)
    trust_revision(workspace, run, trust, ask=not as_json)
    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        found = explained(run, EvaluationRequest(played.panel, played.tasks), workspace, since)
    if as_json:
        output.document(asdict(found))
        return
    for text in _lines(found):
        output.line(text)
    output.table([_cells(each) for each in found.causes], CAUSES)
    output.line()
    output.table(_changed(found.kinds, "success of"), ("what", "before", "after"))
    output.table(_changed(found.seconds, "seconds of"), ("what", "before", "after"))
    for alarm in found.alarms:
        output.line(f"alarm: {alarm}")


def _lines(found: "Explanation") -> Iterator[str]:
    before, after = found.held_out
    yield f"{found.before} to {found.after}: success on {found.panel} {before:.3f} to {after:.3f}"
    old, new = found.training
    if old is not None and new is not None:
        chance = "" if found.chance is None else f"; without any change, as much with probability {found.chance:.2f}"
        yield f"training success {old:.3f} to {new:.3f}{chance}"


def _cells(cause: "Cause") -> dict[str, object]:
    effect = f"{cause.effect.mean:+.3f}" if cause.beyond_noise is None else str(cause.effect)
    return {
        "cause": cause.what,
        "of": cause.of,
        "effect": effect,
        "beyond_noise": cause.beyond_noise,
        "see": cause.command,
    }


def _changed(values: Mapping[str, tuple[float, float]], what: str) -> list[dict[str, object]]:
    return [{"what": f"{what} {name}", "before": old, "after": new} for name, (old, new) in values.items()]


COMMANDS = (explain,)
