"""``coevo evaluate``."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, TrustOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.flows.evaluation.panel_evaluation import Evaluation, EvaluationRequest

HASH, SHOWN = 16, 8
"""Characters of a panel's hash in JSON, and in the table, which has 80 columns."""


@dataclass(frozen=True)
class EvaluationOptions:
    """Policy, panel and banks, as options: the modules of the requests take too long to import for `--help`."""

    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings to change for the evaluation.")
    ] = None
    env: Annotated[
        str | None,
        typer.Option(
            help="Environment, or recipe with its prompts and retrieval, or RUN[@N] of a served agent; by default the "
            "target's."
        ),
    ] = None
    panel: Annotated[
        str | None,
        typer.Option(
            help="Panel to play; by default the first of the settings. training: tasks the revision was trained on."
        ),
    ] = None
    tasks: Annotated[int | None, typer.Option(min=1, help="Tasks of the panel; by default as in the settings.")] = None
    bank: Annotated[
        list[str] | None,
        typer.Option(
            help="own (the default); none (policy alone); random (random entries); OTHER[@M], the bank of a run; or a "
            "file of `coevo bank export`. Repeat it to compare banks on the same draws."
        ),
    ] = None
    discovery: Annotated[
        int, typer.Option(min=0, metavar="K", help="Attempts per task, with lessons from the failed ones.")
    ] = 0


@dataclass(frozen=True)
class SampleOptions:
    """How it is played, and where the results go."""

    samples: Annotated[int, typer.Option(min=1, max=1024, metavar="K", help="Episodes per task, for pass@K.")] = 1
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.jsonl", help="Keep every episode with all its turns, as it ends.")
    ] = None
    resume: Annotated[bool, typer.Option("--resume", help="Continue what the file holds.")] = False
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Most episodes in progress; by default 64.")
    ] = None
    batch: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Most sequences computed at once; it changes no result.")
    ] = None

    @property
    def are_given(self) -> bool:
        """True if one differs from its default."""
        return self != SampleOptions()


@with_option_groups
def evaluate(
    target: Annotated[
        str,
        typer.Argument(
            metavar="RUN[@N]|DIR|URL",
            help="Run, directory with a model, or URL: of a `coevo serve`, or of an API with policy.model=NAME.",
        ),
    ],
    options: EvaluationOptions,
    sampling: SampleOptions,
    trust: TrustOption = None,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> None:
    """Evaluate a run, a model in a directory, or a served agent on a held-out panel.

    The bank is read-only, and a run does not change; `coevo watch` shows its episodes. Shows success over all tasks and
    per type of task, and the Vendi score of successes and failures: the effective number of different trajectories.
    With --discovery K, also shows the share of tasks that are solved within 1 to K attempts; a lesson written between
    attempts enters without a replay, serves its own task only and is discarded.

    With several samples or banks, a file of results, another environment, a directory or a URL it shows avg@K and
    pass@K with intervals over tasks, and paired differences between the banks, instead.

    Example: coevo evaluate homerules-coevo-rl-1@20 --bank own --bank none --samples 4 --output results.jsonl
    """
    from coevo.flows.evaluation.evaluation_targets import kind_of, names_run

    workspace, banks = workspace_at(directory), tuple(options.bank or ("own",))
    kind = kind_of(target, workspace)
    run = target if kind == "run" else options.env if kind == "url" and names_run(options.env, workspace) else None
    if run is not None:
        from coevo.flows.console.trust_prompt import trust_revision

        trust_revision(workspace, run, trust, ask=not as_json)
    listed = len(banks) > 1 or Path(banks[0]).suffix.lower() in (".jsonl", ".parquet")
    if kind != "run" or sampling.are_given or listed or options.overrides or options.env is not None:
        if options.panel == "training":
            raise CoevoError(
                "--panel training goes with a run, one episode per task and one bank: leave the others out"
            )
        _sampled(target, options, sampling, banks, workspace, as_json)
        return
    _evaluated(target, options, banks[0], workspace, as_json)


def _evaluated(run: str, options: EvaluationOptions, bank: str, workspace: Workspace, as_json: bool) -> None:
    """Play one episode per task of a run's panel."""
    from coevo.flows.evaluation.panel_evaluation import EvaluationRequest

    request = EvaluationRequest(options.panel, options.tasks, bank, options.discovery, keeps=True)
    result = _played(run, request, workspace)
    lost = any(episode.lost for episode in result.episodes)
    row = {"run": run, "panel": result.panel.name, "bank": request.bank, **_figures(result, lost)}
    row["panel_hash"] = result.panel.hash[:HASH]
    kinds = [{"type": kind, **_figures(part, lost)} for kind, part in result.by_kind().items()]
    attempts = [{"attempts": number, "solved": share} for number, share in result.discovery.items()]
    vendi = [{"trajectories": side, "vendi": score} for side, score in result.vendi.items()]
    if as_json:
        shares = {str(number): share for number, share in result.discovery.items()}
        output.document(row | {"types": kinds, "discovery": shares, "vendi": dict(result.vendi)})
        return
    _print([row | {"panel_hash": row["panel_hash"][:SHOWN]}], kinds, attempts, vendi)


def _sampled(
    target: str,
    options: EvaluationOptions,
    sampling: SampleOptions,
    banks: tuple[str, ...],
    workspace: Workspace,
    as_json: bool,
) -> None:
    """Play several episodes per task, or with several banks, or with a policy from anywhere."""
    if options.discovery:
        raise CoevoError(
            "--discovery is for one episode per task with one bank of a run: leave out --samples, --output, --env, "
            "further banks and settings, or leave it out"
        )
    from coevo.flows.console.progress import shown
    from coevo.flows.evaluation.evaluate_samples import CONCURRENCY, SampleRequest, evaluate_samples
    from coevo.flows.evaluation.evaluation_targets import TargetSettings
    from coevo.tasks.publish.reporter import reporting_to

    width = sampling.concurrency or CONCURRENCY
    request = SampleRequest(
        options.panel, options.tasks, banks, sampling.samples, width, sampling.batch, sampling.output, sampling.resume
    )
    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        found = evaluate_samples(target, TargetSettings(options.env, options.overrides or []), request, workspace)
    if as_json:
        output.document(found)
        return
    _print_samples(found)


def _print_samples(found: dict[str, Any]) -> None:
    count = found["samples"]
    output.line(f"{found['target']} on {found['environment']} {found['panel']}, {found['tasks']} tasks")
    rows = []
    for bank, row in found["figures"].items():
        shares = {f"avg@{count}": row["avg"], f"pass@{count}": row["pass"][str(count)]}
        cells = {name: share and f"{share['mean']:.3f} [{share['low']:.3f}, {share['high']:.3f}]"
                 for name, share in shares.items()}  # fmt: skip
        rows.append({"bank": bank, **cells, "reward": row["reward"], "tokens": row["tokens"], "lost": row["lost"]})
    output.table(rows, tuple(rows[0]))
    for row in found["differences"]:
        gain = f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"
        output.line(f"{row['bank']} minus {row['against']}: {gain} over {row['tasks']} tasks")
    output.line("brackets: 95 % interval over tasks; another seed may differ by more")


def _print(*tables: list[dict[str, Any]]) -> None:
    """Print tables that have rows, with blank lines between them."""
    for number, rows in enumerate(filter(None, tables)):
        if number:
            output.line()
        output.table(rows, tuple(rows[0]))
    output.line("stderr: over tasks; another seed may differ by more")


def _figures(result: "Evaluation", lost: bool) -> dict[str, Any]:
    """Figures of a row, with the number of lost episodes if the table has it; success is None if all were lost."""
    count = sum(bool(episode.lost) for episode in result.episodes)
    success, stderr = (None, None) if count == len(result.episodes) else (result.success, result.stderr)
    return {"tasks": len(result.episodes), "success": success, "stderr": stderr} | ({"lost": count} if lost else {})


def _played(run: str, request: "EvaluationRequest", workspace: Workspace) -> "Evaluation":
    from coevo.flows.console.progress import shown
    from coevo.flows.evaluation.evaluate_revision import evaluate_revision
    from coevo.tasks.publish.reporter import reporting_to

    with shown(output.console(stderr=True), 0, is_aside=True) as progress, reporting_to(progress):
        return evaluate_revision(run, request, workspace)


COMMANDS = (evaluate,)
