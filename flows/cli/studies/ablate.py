"""``coevo ablate``: studies, listed, run and compared."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coevo.flows.console import output
from coevo.flows.console.options import JsonOption, WorkspaceOption, with_option_groups, workspace_at
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError

if TYPE_CHECKING:
    from coevo.configs.load.pairing import Pairing
    from coevo.configs.run_config import RunConfig
    from coevo.configs.study_config import StudyConfig

OVER = {
    "end": "at the end",
    "gain": "end minus start",
    "area": "mean over the run",
    "rise": "last quarter minus the first",
}
"""Headings of the tables, by ``over`` of a metric."""
ROWS = ("arm", "seeds", "mean", "interval", "difference", "of_difference", "expected", "verdict", "episodes", "tokens")
PLAN = ("arm", "expected", "iterations", "episodes", "hours", "finished", "settings")


@dataclass(frozen=True)
class StudyOptions:
    """Which study: a shipped one, a file, or a grid over a recipe."""

    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="A study of --list, or a .yaml file.")] = None
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Settings of every arm.")] = (
        None
    )
    recipe: Annotated[str | None, typer.Option(help="With --grid, instead of a study: the recipe.")] = None
    axes: Annotated[
        list[str] | None, typer.Option("--grid", metavar="KEY=VALUE,VALUE", help="Values to combine; may be repeated.")
    ] = None
    model: Annotated[
        str | None, typer.Option(help="With a paper's table (`coevo recipes --papers`): the model of its rows.")
    ] = None
    seeds: Annotated[int | None, typer.Option(min=1, help="Number of seeds: 1 to this number.")] = None
    name: Annotated[str | None, typer.Option(help="Name that its runs begin with; by default the study's.")] = None

    def described(self) -> "StudyConfig":
        """The study with the user's settings.

        Raises:
            CoevoError: the options name none, or one that is not possible.
        """
        from coevo.configs.load.load_study import changed

        # With a grid, the first word is a setting as well.
        first = [] if self.recipe is None or self.study is None else [self.study]
        settings = [*first, *(self.overrides or [])]
        return changed(self._chosen(settings), self.name, self.seeds, settings)

    def _chosen(self, settings: list[str]) -> "StudyConfig":
        from coevo.configs.load.load_study import grid, load_study
        from coevo.configs.load.pairing import Pairing
        from coevo.configs.load.paper_tables import table_studies, table_study

        if self.recipe is not None and self.axes:
            return grid(self.recipe, self.axes, _panel(self.recipe, settings), settings)
        if self.recipe is not None or self.axes:
            raise CoevoError("--recipe and --grid go together: coevo ablate --recipe RECIPE --grid KEY=VALUE,VALUE")
        if self.study is None:
            raise CoevoError("ablate: name a study, see `coevo ablate --list`, or give --recipe and --grid")
        if (table := table_studies().get(self.study)) is not None:
            panel = _panel_of(Pairing(table[2], table[1].rows[0].method, self.model or table[1].model), settings)
            return table_study(self.study, self.model, panel)
        if self.model is not None:
            known = ", ".join(table_studies())
            raise CoevoError(f"--model goes with a paper's table, and {self.study!r} is none: choose from {known}")
        return load_study(self.study)


@dataclass(frozen=True)
class PlayOptions:
    """Where its runs are played, and where the results go, if anything is started."""

    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check every arm, and forecast its hours; start nothing.")
    ] = False
    keep: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Decide the study: play reserved worlds, each result landing in DIR."),
    ] = None
    show: Annotated[bool, typer.Option("--show", help="Show the result of the finished runs; start nothing.")] = False
    pool: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Spread the runs over the workers of a pool, `coevo worker --pool NAME`."),
    ] = None


@dataclass(frozen=True)
class ClusterOptions:
    """A cluster on whose nodes its runs are played, and the place where they live meanwhile."""

    cluster: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Play the runs on a Ray cluster: HOST:PORT, or `auto`; needs --remote."),
    ] = None
    remote: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Directory or s3://BUCKET/PREFIX that all nodes reach.")
    ] = None
    cpus: Annotated[
        float | None, typer.Option(min=0.1, help="With --cluster: cores of a node that each run takes; 1 by default.")
    ] = None
    gpus: Annotated[
        float | None, typer.Option(min=0.0, help="With --cluster: GPUs of a node that each run takes; 0 by default.")
    ] = None

    def check(self, playing: PlayOptions, list_all: bool) -> None:
        """Refuse options that do not go together, or would have no effect."""
        if (self.cluster is None) != (self.remote is None):
            raise CoevoError("--cluster and --remote go together: the nodes exchange the runs at an address")
        if self.cluster is None and (self.cpus is not None or self.gpus is not None):
            raise CoevoError("--cpus and --gpus are what a run takes of a node: give --cluster, or leave them out")
        if self.cluster is not None and (playing.keep is not None or playing.pool is not None):
            raise CoevoError("--cluster plays a study elsewhere: leave --pool and --keep out")
        if self.cluster is not None and (list_all or playing.dry_run or playing.show):
            raise CoevoError("--list, --dry-run and --show play nothing: leave them or --cluster and --remote out")


@with_option_groups
def ablate(
    options: StudyOptions,
    playing: PlayOptions,
    nodes: ClusterOptions,
    list_all: Annotated[bool, typer.Option("--list", help="List the studies and their size.")] = False,
    as_json: JsonOption = False,
    directory: WorkspaceOption = None,
) -> int:
    """Run a study, arms x seeds, and compare its arms with the finding of a paper.

    Each run is an ordinary one, NAME-ARM-sSEED. Repeat the command to continue: finished runs are skipped, an
    unfinished one continues from its last revision.

    `interval`, `of difference`: 95 % over the seeds by Student's t; differences from the reference arm are paired by
    seed. `verdict`: as the paper, reversed, or undecided, at 5 % for all claims of the study together (Holm).

    With `--keep DIR` each seed has a reserved world of its own, and `DIR/STUDY.json` holds design, results and notes
    of what changed after results had been seen. Settings of your own are refused there.

    A run that stops for approval exits with code 3. With --pool the command ends at once: repeat it with --show. With
    --cluster the runs are played side by side on the nodes of a Ray cluster; that of a dead node continues on another.

    Example: coevo ablate jerp-frozen-rules --seeds 3
    """
    nodes.check(playing, list_all)
    if list_all:
        return _list(as_json)
    described, workspace = options.described(), workspace_at(directory)
    keep, pool = playing.keep, playing.pool
    if keep is not None:
        _check_kept(options, pool)
    if playing.dry_run:
        return _dry_run(described, workspace, as_json)
    if pool is not None and not playing.show:
        return _submit(described, workspace, pool, as_json)
    code = 0 if playing.show else _play(described, workspace, as_json, keep, nodes)
    _report(described, workspace, as_json, keep)
    return code


def _check_kept(options: StudyOptions, pool: str | None) -> None:
    """Refuse what a study that is decided does not take."""
    if options.overrides or options.axes:
        raise CoevoError(
            "--keep decides a study as its file has it: leave the settings out, or write them into the file"
        )
    if pool is not None:
        raise CoevoError("--keep decides a study on this machine: leave --pool out")


def _panel(recipe: str, settings: list[str]) -> str:
    """The first panel of a recipe with the settings of every arm."""
    from coevo.flows.configure import configure

    return configure(recipe, settings).evaluation.panels[0]


def _panel_of(pairing: "Pairing", settings: list[str]) -> str:
    """The first panel of a pairing with the settings of every arm."""
    from coevo.flows.configure import configure_pairing

    return configure_pairing(pairing, settings).evaluation.panels[0]


def _list(as_json: bool) -> int:
    from coevo.configs.load.load_study import load_studies

    studies, standings = load_studies(), kept_standings()
    if as_json:
        sizes = [{key: row[key] for key in SIZE} for row in sized(studies, standings)]
        output.document([about | size for about, size in zip(listed(studies), sizes, strict=True)])
        return 0
    rows = list(sized(studies, standings))
    output.table(rows, ("name", *SIZE))
    total = sum(float(row["hours"] or 0) for row in rows)
    output.line(f"{total:.0f} hours on two quiet cores; --json and --dry-run say more")
    return 0


def _dry_run(study: "StudyConfig", workspace: Workspace, as_json: bool) -> int:
    from coevo.flows.studies.outcome import is_finished, revisions_of
    from coevo.flows.studies.study_runs import arms_of, check_parts, check_runs, hours_of, runs_of

    runs = runs_of(study)
    check_runs(study, runs, workspace)
    check_parts(runs)
    done = [each.arm.name for each in runs if is_finished(each, revisions_of(each, workspace))]
    hours = hours_of(runs)
    rows: list[dict[str, Any]] = [
        {
            "arm": each.arm.name,
            "expected": "reference" if each.arm is study.base else each.arm.expected,
            "iterations": each.config.iterations,
            "episodes": episodes(each.config),
            "hours": round(hours[each.arm.name], 2),
            "finished": f"{done.count(each.arm.name)} of {study.seeds}",
            "settings": " ".join(each.arm.settings),
        }
        for each in arms_of(runs)
    ]
    if as_json:
        output.document({"study": study.model_dump(mode="json"), "arms": rows, "runs": [each.name for each in runs]})
        return 0
    output.line(f"{study.name}: {study.finding}")
    output.table(rows, PLAN)
    count, total = sum(episodes(each.config) for each in runs), study.seeds * sum(hours.values())
    output.line(f"every arm is possible: {len(runs)} runs, {count} episodes, about {total:.1f} hours on this machine")
    return 0


def _play(study: "StudyConfig", workspace: Workspace, quiet: bool, keep: Path | None, nodes: ClusterOptions) -> int:
    from coevo.flows.studies.ablate import THEN, start

    try:
        if nodes.cluster is not None:
            return _play_on_nodes(study, workspace, nodes)
        return start(study, workspace, quiet, alone=True, keep=keep)
    except KeyboardInterrupt:
        output.line(f"interrupted: {THEN}")
        raise


def _play_on_nodes(study: "StudyConfig", workspace: Workspace, nodes: ClusterOptions) -> int:
    from coevo.flows.servers.ray_cluster import cluster_address
    from coevo.flows.studies.cluster_runs import play_on_cluster
    from coevo.utilities.processes import Resources

    assert nodes.cluster is not None
    assert nodes.remote is not None
    here = nodes.cluster == "auto" and not os.environ.get("RAY_ADDRESS")
    address = cluster_address(workspace.root) if here else nodes.cluster
    resources = Resources(1.0 if nodes.cpus is None else nodes.cpus, nodes.gpus or 0.0)
    return play_on_cluster(study, workspace, address, nodes.remote, resources)


def _submit(study: "StudyConfig", workspace: Workspace, pool: str, as_json: bool) -> int:
    """Create the runs that do not exist, and have the workers of a pool play those that are not finished."""
    from coevo.flows.sessions.schedules import submit
    from coevo.flows.studies.outcome import is_finished, revisions_of
    from coevo.flows.studies.study_runs import check_parts, check_runs, runs_of

    runs = runs_of(study)
    check_runs(study, runs, workspace)
    check_parts(runs)
    for each in runs:
        if not workspace.run(each.name).created.is_file():
            workspace.create(each.name, each.config)
    left = [each for each in runs if not is_finished(each, revisions_of(each, workspace))]
    begun = submit(workspace, {each.name: each.config.iterations for each in left}, pool)
    row = {"pool": pool, "runs": len(runs), "finished": len(runs) - len(left), "begun": begun}
    output.result(
        as_json,
        row,
        f"{study.name}: {len(begun)} runs wait for `coevo worker --pool {pool}`, {len(left) - len(begun)} were begun "
        f"before, {row['finished']} of {len(runs)} are finished; see `coevo ablate {study.name} --show`",
    )
    return 0


def _report(study: "StudyConfig", workspace: Workspace, as_json: bool, keep: Path | None) -> None:
    from coevo.flows.studies.ablate import result_of

    result = result_of(study, workspace, keep)
    if as_json:
        output.document(result.document())
        return
    output.line(f"{study.name}, after {study.paper}: {study.finding}")
    for metric in study.metrics:
        output.line(f"{metric.title}, {OVER[metric.over]}")
        found = [asdict(row) for row in result.rows if (row.metric, row.over) == (metric.title, metric.over)]
        output.table([_cells(row, study) for row in found], ROWS)
    for line in result.missing():
        output.line(line)
    output.line(result.summary())


def _cells(row: dict[str, Any], study: "StudyConfig") -> dict[str, object]:
    is_base = row["arm"] == study.base.name
    return {
        "arm": row["arm"],
        "seeds": row["seeds"],
        "mean": row["mean"],
        "interval": _interval(row["low"], row["high"], ""),
        "difference": None if row["difference"] is None else f"{row['difference']:+.3f}",
        "of_difference": _interval(row["difference_low"], row["difference_high"], "+"),
        "expected": row["expected"] or ("reference" if is_base else None),
        "verdict": row["verdict"],
        "episodes": None if row["episodes"] is None else round(row["episodes"]),
        "tokens": None if row["tokens"] is None else round(row["tokens"]),
    }


def _interval(low: float | None, high: float | None, sign: str) -> str | None:
    return None if low is None or high is None else f"[{low:{sign}.3f}, {high:{sign}.3f}]"


COMMANDS = (ablate,)


SIZE = ("arms", "seeds", "hours", "result")


def sized(studies: "Sequence[StudyConfig]", standings: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Size of each study, with its hours on two quiet cores and what has come out; no arm is composed."""
    for study in studies:
        hours = None if study.minutes is None or study.needs else study.seeds * len(study.arms) * study.minutes / 60
        yield {
            "name": study.name,
            "arms": len(study.arms) or None,
            "seeds": None if study.needs else study.seeds,
            "hours": None if hours is None else f"{hours:.1f}",
            "result": "cannot run" if study.needs else standings.get(study.name, "not run"),
        }


def kept_standings() -> dict[str, str]:
    """Verdict on each study that the checkout keeps a result of; empty where there is no checkout."""
    from coevo.configs.load.shipped_files import ROOT

    found: dict[str, str] = {}
    for path in (ROOT.resolve().parent / "benchmarks" / "results" / "studies").glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        shown = document if document["runs"] else next(iter(document.get("earlier", [])), document)
        if shown["runs"]:
            found[path.stem] = shown["standing"] or "no claim"
    return found


def listed(studies: "Sequence[StudyConfig]") -> Iterator[dict[str, Any]]:
    """One row per study: what it is about, and what it plays.

    ``episodes``: planned training episodes of all runs, without replays; None for a study that cannot run.
    """
    from coevo.configs.load.load_study import configured

    for study in studies:
        configs = [] if study.needs else [configured(study, arm, 1) for arm in study.arms]
        yield {
            "name": study.name,
            "paper": study.paper,
            "figure": study.figure,
            "finding": study.finding,
            "arms": len(study.arms) or None,
            "seeds": study.seeds if configs else None,
            "episodes": study.seeds * sum(map(episodes, configs)) if configs else None,
            "needs": "; ".join([*study.needs, *_extras(configs)]) or None,
        }


def episodes(config: "RunConfig") -> int:
    """Training episodes that a run plans: iterations x tasks x group."""
    return config.iterations * config.rollout.tasks * config.rollout.group_size


def _extras(configs: "Sequence[RunConfig]") -> Iterator[str]:
    embeds = any(
        "embedding" in config.bank.retrieval.model_dump_json() for config in configs if config.bank is not None
    )
    if embeds and find_spec("sentence_transformers") is None:
        yield "pip install 'coevo[embedding]'"
