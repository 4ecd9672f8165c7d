"""Evaluation of any revision on any panel, with its own bank or another one. Nothing of the run is touched."""

import math
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from configs.bank import BankConfig
from configs.errors import CoevoError
from configs.load import validate
from configs.run import RunConfig
from envs.base import Environment
from envs.registry import make
from flows.reference import Reading, reading
from lineage.workspace import Workspace
from memory.admission.base import admission_of
from memory.clusters import Clusters
from memory.writers.base import writer_of
from records.draws import key
from records.episode import Episode
from records.task import Panel, key_by
from tasks.assemble import open_engine, player_with
from tasks.discover import Learner, Notebook, discover
from tasks.evaluate import panel_index, play_panel
from tasks.play import Player
from tasks.references import FOLDER, references_of
from tasks.retrieve import NOTHING, Experience, at_random, index_of, is_shown, recall

BANKS = ("own", "none", "random")
"""Banks that are not another run's."""


@dataclass(frozen=True)
class Request:
    """What is to be played.

    Attributes:
        panel: its name.
        tasks: how many of its tasks; as many as in the run's own evaluations where None.
        bank: ``own``, ``none`` (what the policy has internalised), ``random`` (entries of the own bank, drawn without
            looking at the task), or the bank of another ``RUN[@N]`` (what transfers).
        discovery: attempts at each task (k of Discovery@k); 0 for one attempt and no writing.
    """

    panel: str
    tasks: int | None = None
    bank: str = "own"
    discovery: int = 0


@dataclass(frozen=True)
class Evaluation:
    """One panel played by one revision.

    Attributes:
        panel: what was played.
        episodes: one a task, in the panel's order.
        discovery: share of the tasks solved within so many attempts.
    """

    panel: Panel
    episodes: Sequence[Episode]
    discovery: Mapping[int, float]

    @property
    def success(self) -> float:
        """Success rate."""
        return sum(episode.success for episode in self.episodes) / len(self.episodes)

    @property
    def stderr(self) -> float:
        """Standard error of the success rate."""
        return math.sqrt(self.success * (1 - self.success) / len(self.episodes))

    def by_kind(self) -> dict[str, "Evaluation"]:
        """The same for each type of task, by name."""
        kinds = sorted({episode.task.kind for episode in self.episodes})
        return {kind: Evaluation(self.panel, [e for e in self.episodes if e.task.kind == kind], {}) for kind in kinds}


def evaluate_revision(reference: str, request: Request, place: Workspace) -> Evaluation:
    """Play a panel with the policy of ``RUN[@N]``.

    Args:
        reference: ``RUN``, ``RUN@N`` or ``RUN@TAG``.
        request: what is played, and with which bank.
        place: the workspace.

    Raises:
        CoevoError: one of them is not there, a setting is not confirmed, or they do not go together.
    """
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(prefix="coevo-")))
        run = stack.enter_context(reading(reference, place))
        place.trust.demand(run.paths.name, run.config)
        other = None if request.bank in BANKS else stack.enter_context(reading(request.bank, place))
        config, env = configured(run, request), make(run.config.env)
        if request.panel not in env.panels:
            raise CoevoError(f"{request.panel!r} is no panel of {env.name}: choose one of {', '.join(env.panels)}")
        panel = env.panel(request.panel, request.tasks or config.evaluation.tasks)
        seen = experience_of(run, other, request.bank, env, panel)
        policy = _artifact(run, "policy", scratch)
        engine = stack.enter_context(closing(open_engine(config, policy, scratch / "engine")))
        player = player_with(config, env, engine)
        episodes = play_panel(player, panel, seen, config.seed, run.manifest.revision)
        if not request.discovery:
            return Evaluation(panel, episodes, {})
        learner = learner_at(run, notebook(run if request.bank == "own" else other, config), player, scratch)
        return Evaluation(panel, episodes, discover(learner, panel, seen, episodes, request.discovery))


def configured(run: Reading, request: Request) -> RunConfig:
    """The run's configuration, as far as it goes with what is asked for.

    Raises:
        CoevoError: it does not.
    """
    if request.discovery and request.bank == "random":
        raise CoevoError(
            "--discovery with --bank random: attempts after the first would look at the task: choose another bank"
        )
    settings = run.config.model_dump(mode="json")
    settings["evaluation"] |= {"discovery": request.discovery}
    return validate(settings, source=run.name)


def experience_of(run: Reading, other: Reading | None, bank: str, env: Environment[object], panel: Panel) -> Experience:
    """What each task of the panel sees at its first attempt; ``other`` is the run whose bank it is, if not its own."""
    settings, seed = run.config.bank, run.config.seed
    retrieval = (settings or BankConfig()).retrieval
    if other is not None:
        return recall(index_of(other.bank(), run.config), key(seed, "evaluate"))
    if bank == "none":
        return NOTHING
    if bank == "random":
        return at_random(run.bank().active(), retrieval.k, panel.tasks, key(seed, "random entries"))
    own = None if settings is None else index_of(run.bank(), run.config)
    if own is not None and not is_shown(retrieval, run.manifest.iteration, len(run.bank().active())):
        own = None
    return recall(panel_index(env, panel.name, own, settings), key(seed, "evaluate"))


def notebook(owner: Reading | None, config: RunConfig) -> Notebook:
    """A copy of a run's bank; an empty one where nobody owns it, or the owner has none."""
    bank = None if owner is None or owner.config.bank is None else owner.bank()
    known = [] if bank is None else bank.clusters()
    clusters = None if config.clusters is None else Clusters(config.clusters, known)
    return Notebook((), {}, clusters) if bank is None else Notebook(tuple(bank.active()), bank.stats(), clusters)


def learner_at(run: Reading, start: Notebook, player: Player, scratch: Path) -> Learner:
    """A revision as a learner."""
    config, manifest, bank = run.config, run.manifest, run.config.bank
    kept = _artifact(run, FOLDER, scratch) if FOLDER in manifest.artifacts else None
    return Learner(
        config,
        player,
        writer=None if bank is None else writer_of(bank.writer, key_by(bank.key)),
        admission=None if bank is None else admission_of(bank.admission),
        start=start,
        references=references_of(config, kept),
        revision=manifest.revision,
        iterations=manifest.iteration,
    )


def _artifact(run: Reading, name: str, scratch: Path) -> Path:
    return run.lineage.materialise(run.manifest.revision, name, scratch / name)
