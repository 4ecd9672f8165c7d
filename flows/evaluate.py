"""Evaluation of any revision on any panel, with its own bank or another one. Nothing of the run is touched."""

import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from configs.bank import BankConfig
from configs.errors import CoevoError
from envs.base import Environment
from envs.registry import make
from flows.reference import Reading, reading
from lineage.workspace import Workspace
from records.draws import key
from records.episode import Episode
from records.task import Panel
from tasks.assemble import open_engine, player_with
from tasks.evaluate import panel_index, play_panel
from tasks.retrieve import NOTHING, Experience, at_random, index_of, is_shown, recall


@dataclass(frozen=True)
class Evaluation:
    """One panel played by one revision.

    Attributes:
        panel: what was played.
        episodes: one a task, in the panel's order.
    """

    panel: Panel
    episodes: Sequence[Episode]

    @property
    def success(self) -> float:
        """Success rate."""
        return sum(episode.success for episode in self.episodes) / len(self.episodes)

    @property
    def stderr(self) -> float:
        """Standard error of the success rate."""
        return math.sqrt(self.success * (1 - self.success) / len(self.episodes))


def evaluate_revision(reference: str, panel: str, tasks: int | None, bank: str, place: Workspace) -> Evaluation:
    """Play a panel with the policy of ``RUN[@N]``.

    Args:
        reference: ``RUN``, ``RUN@N`` or ``RUN@TAG``.
        panel: its name.
        tasks: how many of its tasks; as many as in the run's own evaluations where None.
        bank: ``own``, ``none``, ``random`` (entries of the own bank, drawn without looking at the task), or the bank
            of another ``RUN[@N]``.
        place: the workspace.

    Raises:
        CoevoError: one of them is not there.
    """
    with reading(reference, place) as run, TemporaryDirectory(prefix="coevo-") as scratch:
        env = make(run.config.env)
        if panel not in env.panels:
            raise CoevoError(f"{panel!r} is no panel of {env.name}: choose one of {', '.join(env.panels)}")
        revision = run.manifest.revision
        policy = run.lineage.materialise(revision, "policy", Path(scratch) / "policy")
        played = env.panel(panel, tasks or run.config.evaluation.tasks)
        seen = experience_of(bank, run, env, played, place)
        with closing(open_engine(run.config, policy, Path(scratch) / "engine")) as engine:
            player = player_with(run.config, env, engine)
            return Evaluation(played, play_panel(player, played, seen, run.config.seed, revision))


def experience_of(bank: str, run: Reading, env: Environment[object], panel: Panel, place: Workspace) -> Experience:
    """What each task of the panel sees."""
    settings, seed = run.config.bank, run.config.seed
    retrieval = (settings or BankConfig()).retrieval
    if bank == "none":
        return NOTHING
    if bank == "random":
        return at_random(run.bank().active(), retrieval.k, panel.tasks, key(seed, "random entries"))
    if bank == "own":
        own = None if settings is None else index_of(run.bank(), run.config)
        if own is not None and not is_shown(retrieval, run.manifest.iteration, len(run.bank().active())):
            own = None
        return recall(panel_index(env, panel.name, own, settings), key(seed, "evaluate"))
    with reading(bank, place) as other:
        return recall(index_of(other.bank(), run.config), key(seed, "evaluate"))
