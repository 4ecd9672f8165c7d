"""The runs of a study, the worlds that they play in, and what must be so before they start."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from coevo.configs.load.load_study import SUCCESS, configured
from coevo.configs.load.pairing import Pairing
from coevo.configs.run_config import RunConfig
from coevo.configs.study_config import ArmConfig, StudyConfig
from coevo.envs.registry import make
from coevo.flows.configure import configure_pairing, resolved
from coevo.lineage.atomic_files import make_private
from coevo.lineage.revision.code_version import flat
from coevo.lineage.workspace import Workspace
from coevo.models.capacity.devices import here
from coevo.tasks.preflight.forecast import check_fits, forecast
from coevo.tasks.preflight.rehearse import Rehearsal, rehearse
from coevo.tasks.publish.reporter import in_stage
from coevo.utilities.errors import CoevoError, ConfigError, nearest

TRAINING = "train"
"""Name of the training tasks among the panels of a metric."""
RESERVED, BLOCK_SIZE = range(6_104_000_000, 6_104_100_000), 100
"""Worlds that no setting was chosen on: a range that nothing else here names, opened in blocks, one after another.

A world of the range is also the seed of the runs in it; where there are no worlds, it is the seed alone.
"""


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study.

    Attributes:
        name: its name.
        arm: its arm.
        seed: its seed; with reserved worlds, the number of its world as well.
        config: its configuration.
        partner: run that it costs as much as; None where its iterations decide.
    """

    name: str
    arm: ArmConfig
    seed: int
    config: RunConfig
    partner: str | None = None


@dataclass(frozen=True, slots=True)
class StudyLock:
    """Lock of a study: one process at a time plays it in a workspace."""

    workspace: Workspace
    name: str

    @property
    def lock(self) -> Path:
        """File of the lock."""
        make_private(self.workspace.root)
        folder = self.workspace.root / "studies"
        folder.mkdir(exist_ok=True)
        return folder / f"{self.name}.lock"


def runs_of(study: StudyConfig, block: int | None = None) -> list[StudyRun]:
    """The runs of a study, seed by seed, so that a part of them has pairs.

    Args:
        study: the study.
        block: block of ``RESERVED`` worlds to play in; None plays the seeds 1 to ``seeds`` in the worlds of the
            recipe.

    Raises:
        CoevoError: the study needs what does not exist here, or an arm is not possible or is another one.
    """
    if study.needs:
        raise CoevoError(f"study {study.name!r} cannot run yet: it needs {'; '.join(study.needs)}")
    first = {arm.name: configured_arm(study, arm) for arm in study.arms}
    _check_apart(study, first)
    seeds = range(1, study.seeds + 1) if block is None else worlds(block, study.seeds)

    def name(arm: str, seed: int) -> str:
        return f"{study.name}-{arm}-{'s' if block is None else 'w'}{seed}"

    return [
        StudyRun(
            name(arm.name, seed),
            arm,
            seed,
            _seeded(first[arm.name], seed, own_world=block is not None),
            None if arm.matches is None else name(arm.matches.arm, seed),
        )
        for seed in seeds
        for arm in study.arms
    ]


def worlds(block: int, count: int) -> range:
    """The first worlds of a block.

    Raises:
        CoevoError: the block has fewer, or there is no such block.
    """
    if count > BLOCK_SIZE:
        raise CoevoError(
            f"a block of reserved worlds has {BLOCK_SIZE}: ask for {BLOCK_SIZE} seeds at most, not {count}"
        )
    blocks = len(RESERVED) // BLOCK_SIZE
    if not 0 <= block < blocks:
        raise CoevoError(f"all {blocks} blocks of reserved worlds are open: reserve another range")
    return RESERVED[block * BLOCK_SIZE :][:count]


def configured_arm(study: StudyConfig, arm: ArmConfig) -> RunConfig:
    """Configuration of an arm's first seed, with a panel to play.

    Raises:
        CoevoError: the arm is not possible, or its environment does not exist.
    """
    if arm.pairing is not None:  # asks how many GPUs this machine has
        return configure_pairing(Pairing(*arm.pairing), [*study.settings, *arm.settings, "seed=1"])
    return resolved(configured(study, arm, 1))


def _check_apart(study: StudyConfig, configs: Mapping[str, RunConfig]) -> None:
    """Check that no two arms resolve to the same configuration."""
    arms: dict[str, str] = {}
    for name, config in configs.items():
        other = arms.setdefault(config.model_dump_json(), name)
        if other != name:
            raise ConfigError(
                f"{study.name}: the arms {other} and {name} have the same settings: change one of them, or leave it out"
            )


def check_runs(study: StudyConfig, runs: list[StudyRun], workspace: Workspace) -> None:
    """Check names, metrics and memory before a study starts anything.

    Raises:
        CoevoError: the name of a run is that of another one, a metric is of no panel that an arm plays, or an arm does
            not fit this machine.
    """
    for each in runs:
        check_name(each, workspace)
    with in_stage("checks that each arm fits this machine"):
        for each in arms_of(runs):
            _check_metrics(study, each)
            with closing(make(each.config.env)) as env:
                check_fits(each.config, env, workspace.root)


def check_parts(runs: list[StudyRun]) -> None:
    """Check each arm with its environment; this imports Prefect.

    Raises:
        CoevoError: the environment has no such panel, does not repeat, or lacks what a warm start is made from.
    """
    from coevo.tasks.run.assemble import environment_of

    with in_stage("checks each arm with its environment"):
        for each in arms_of(runs):
            with environment_of(each.config):
                pass


def hours_of(runs: list[StudyRun]) -> dict[str, float]:
    """Rough hours that one run of each arm takes on this machine. TreatmentGroups of equal prompts share a rehearsal.

    Raises:
        CoevoError: an arm cannot start here, as its first turns show, or the shape of its model is not known.
    """
    rehearsals: dict[str, Rehearsal] = {}
    hours: dict[str, float] = {}
    for each in arms_of(runs):
        config = each.config
        key = f"{config.env.model_dump_json()} {config.context.model_dump_json()} {config.bank is None}"
        if key not in rehearsals:
            with closing(make(config.env)) as env:
                rehearsals[key] = rehearse(config, env)
        found = forecast(config, rehearsals[key], here())
        if found.problems:
            raise CoevoError(f"{each.name}: {found.problems[0]}")
        hours[each.arm.name] = config.iterations * sum(found.seconds.values()) / 3600
    return hours


def check_name(each: StudyRun, workspace: Workspace) -> None:
    """Check that a run does not exist, or is this one.

    Raises:
        CoevoError: its name is invalid, or it has another configuration.
    """
    paths = workspace.run(each.name)
    if not paths.created.is_file():
        workspace.check_vacant(each.name)
        return
    there, here = (flat(config.model_dump(mode="json")) for config in (paths.read_config(), each.config))
    if "threads" not in each.config.rollout.engine.model_fields_set:  # chosen when the run was created
        here["rollout.engine.threads"] = there["rollout.engine.threads"]
    if each.partner is not None:  # it has as many as it takes
        here["iterations"] = there["iterations"]
    key = next((key for key in sorted(there.keys() | here.keys()) if there.get(key) != here.get(key)), None)
    if key is not None:
        raise CoevoError(
            f"run {each.name!r} holds another configuration: {key} is {there.get(key)!r}, the study sets "
            f"{here.get(key)!r}: give the study another name with --name"
        )


def _seeded(config: RunConfig, seed: int, own_world: bool) -> RunConfig:
    # Neither changes anything that the validation of an arm depends on.
    env = config.env
    if own_world and "world" in type(env).model_fields:
        env = env.model_copy(update={"world": seed})
    return config.model_copy(update={"seed": seed, "env": env})


def _check_metrics(study: StudyConfig, run: StudyRun) -> None:
    """Check that an arm plays the panels of the study's metrics of success."""
    evaluation = run.config.evaluation
    for metric, name in ((each, name) for each in study.metrics for name in (each.name, each.minus or "")):
        folder, _, panel = name.rpartition("/")
        played = [TRAINING, *evaluation.panels, *(evaluation.final_panels if metric.over == "end" else ())]
        if folder == SUCCESS and panel not in played:
            raise ConfigError(
                f"{study.name}, arm {run.arm.name}: metrics: {name}: the arm does not play the panel {panel!r}."
                f"{nearest(panel, played)} It plays {', '.join(dict.fromkeys(played))}"
            )


def arms_of(runs: list[StudyRun]) -> Iterator[StudyRun]:
    """The first run of each arm."""
    return (each for each in runs if each.seed == runs[0].seed)
