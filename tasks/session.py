"""An open run: its parts, its stores, and the revision that is being made."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from configs.run import RunConfig
from envs.base import Environment
from lineage.lineage import Lineage
from lineage.workspace import RunPaths
from memory.change import Judged
from memory.clusters import Clusters
from memory.index import Index
from memory.store import Bank
from memory.writer import ContrastWriter
from models.trainer.client import Trainer
from records.draws import Key, key
from records.entry import Entry
from records.episode import Episode
from tasks.gates.episodes import EpisodeLimits
from tasks.play import Player
from tasks.publisher import Publisher
from tasks.recognise import associate
from tasks.report import Reporter
from tasks.retrieve import Experience, index_of, is_shown, recall
from tasks.slots import Slots


@dataclass
class Draft:
    """The revision in the making. Nothing of it is shared before the commit.

    Attributes:
        revision: its number.
        episodes: training episodes, in the order (iteration, task, replica).
        judged: every batch of candidates with what replay said of it.
        added: entries that enter the bank.
        metrics: figures that a repeated run gives again, bit for bit.
        rates: figures that it does not.
        panels: hash of each panel played.
        outcomes: by panel ``1`` or ``0``, solved or not, for each of its tasks in order.
    """

    revision: int
    episodes: list[Episode] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    added: list[Entry] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    panels: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parts:
    """What a run is composed of: no trainer where the policy is frozen, no writer where there is no bank."""

    env: Environment[object]
    player: Player
    trainer: Trainer | None
    writer: ContrastWriter | None
    limits: EpisodeLimits


@dataclass(frozen=True)
class Stores:
    """Where a run is kept, and who is told of it."""

    paths: RunPaths
    bank: Bank
    lineage: Lineage
    publisher: Publisher
    reporter: Reporter


class Session:
    """The position of a run between two commits, and the parts that move it on."""

    def __init__(self, config: RunConfig, parts: Parts, stores: Stores) -> None:
        self.config = config
        self.parts = parts
        self.stores = stores
        self.iteration = 0
        self.fired = 0
        self.accepted: list[str] = []
        self.recent: list[Episode] = []
        self.baselines: dict[str, float] = {}
        self.slots = Slots()
        self.entries: list[Entry] = stores.bank.active()
        self.clusters = None if config.clusters is None else Clusters(config.clusters, stores.bank.clusters())
        self.index = None if config.bank is None else index_of(stores.bank, config, self.clusters)
        self._stats = stores.bank.stats()
        self.draft = Draft(revision=0)
        self.seconds: dict[str, float] = {}
        self.since = perf_counter()

    def key(self, stage: str) -> Key:
        """Root of a stage's draws in this iteration."""
        return key(self.config.seed, self.draft.revision, self.iteration, stage)

    def is_new(self) -> bool:
        """Whether revision 0 is still to be committed."""
        return self.draft.revision == 0

    def learns(self) -> bool:
        """Whether the policy is updated."""
        return self.parts.trainer is not None

    def critic_learns_alone(self) -> bool:
        """Whether the policy still waits for its critic."""
        update = self.config.update
        return update is not None and update.critic is not None and self.iteration < update.critic.warmup

    def writer_is_due(self) -> bool:
        """Whether the bank is updated in this iteration (every Delta policy updates, CoEvo-RL section 3.4)."""
        bank = self.config.bank
        return bank is not None and (self.iteration + 1) % bank.every == 0

    def evaluation_is_due(self) -> bool:
        """Whether the held-out panels are played in this iteration."""
        done = self.iteration + 1
        return done % self.config.evaluation.every == 0 or done == self.config.iterations

    def panels_due(self) -> tuple[str, ...]:
        """Panels of this evaluation; the first and the last one play more of them."""
        evaluation = self.config.evaluation
        ends = self.is_new() or self.iteration + 1 == self.config.iterations
        return evaluation.panels + (evaluation.final_panels if ends else ())

    def commit_is_due(self) -> bool:
        """Whether this iteration, just counted, ends its revision."""
        return self.iteration % self.config.lineage.every == 0 or self.iteration == self.config.iterations

    def remember(self, episodes: Sequence[Episode]) -> None:
        """Keep the iteration's episodes for the writer and for the commit, those that go on until they are over."""
        finished = self.slots.finish(episodes)
        self.recent.extend(finished)
        self.draft.episodes.extend(finished)

    def fire(self) -> None:
        """The writer has seen the episodes since its last firing."""
        self.recent.clear()
        self.fired = self.draft.revision

    def admit(self, entries: Sequence[Entry]) -> None:
        """Let entries into the bank of the revision in the making."""
        if self.clusters is not None and self.config.bank is not None and self.config.bank.retrieval.type == "cluster":
            associate(self.clusters, entries, self.recent)
        self.draft.added.extend(entries)
        self.entries = [*self.entries, *entries]
        self.index = self.index_with(())

    def index_with(self, extra: Sequence[Entry]) -> Index | None:
        """An index over the bank and some entries more; None where there is no bank."""
        return None if self.index is None else self.index.over([*self.entries, *extra], self._stats)

    def updates(self) -> int:
        """Iterations that the policy and bank of the revision in the making have behind them, the present one too."""
        return 0 if self.is_new() else self.iteration + 1

    def shown_index(self, iterations: int) -> Index | None:
        """The index, unless the gates of retrieval are closed after so many iterations."""
        bank = self.config.bank
        return self.index if bank and is_shown(bank.retrieval, iterations, len(self.entries)) else None

    def experience(self, iterations: int) -> Experience:
        """What training attempts are shown after so many iterations."""
        return recall(self.shown_index(iterations), self.key("retrieve"))

    def next_revision(self, committed: int) -> None:
        """Begin the revision after a committed one; its clock starts now."""
        self.draft = Draft(revision=committed + 1)
        self._stats = self.stores.bank.stats()
        self.index = self.index_with(())
        if self.clusters is not None:
            self.clusters.forget_changes()
        self.accepted = []
        self.seconds.clear()
        self.since = perf_counter()
