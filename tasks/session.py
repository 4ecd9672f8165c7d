"""An open run: its parts, its stores, and the revision that is being made."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from configs.run import RunConfig
from envs.base import Environment
from lineage.lineage import Lineage
from lineage.workspace import RunPaths
from memory.admission.base import Admission, Decision
from memory.change import Judged, Ruling
from memory.clusters import Clusters
from memory.index import Index
from memory.library import Library
from memory.pending import Pending, changes_anything
from memory.retirement import barred
from memory.stats import Stats, born
from memory.store import Bank
from memory.writers.base import Writer
from models.trainer.client import Trainer
from records.draws import Key, key
from records.entry import Entry
from records.episode import Episode
from tasks.artifacts import Artifacts
from tasks.gates.episodes import EpisodeLimits
from tasks.play import Player
from tasks.played import Played, Position
from tasks.publisher import Publisher
from tasks.recognise import associate
from tasks.references import references_of
from tasks.report import Reporter
from tasks.retrieve import Experience, index_of, is_shown, recall
from tasks.schedule import Phase, phase_of
from tasks.slots import Slots


@dataclass
class Draft:
    """The revision in the making. Nothing of it is shared before the commit.

    Attributes:
        revision: its number.
        episodes: training episodes, in the order (iteration, task, replica).
        judged: every batch of candidates with what replay said of it.
        operations: what became of every edit operation.
        entries: by id, entries of the bank that enter, change or leave, as they are from now on.
        stats: by id, counters of entries that have changed, as they are from now on.
        metrics: figures that a repeated run gives again, bit for bit.
        rates: figures that it does not.
        panels: hash of each panel played.
        outcomes: by panel ``1`` or ``0``, solved or not, for each of its tasks in order.
        proposed: what waits for a person before it may change the bank.
    """

    revision: int
    episodes: list[Episode] = field(default_factory=list)
    judged: list[Judged] = field(default_factory=list)
    operations: list[Ruling] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    stats: dict[str, Stats] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    panels: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    proposed: Pending | None = None


@dataclass(frozen=True)
class Parts:
    """What a run is composed of: no trainer where the policy is frozen, no writer and admission without a bank."""

    env: Environment[object]
    player: Player
    trainer: Trainer | None
    writer: Writer | None
    admission: Admission | None
    limits: EpisodeLimits


@dataclass(frozen=True)
class Stores:
    """Where a run is kept, and who is told of it; Prefect's pages are there within a flow only."""

    paths: RunPaths
    bank: Bank
    lineage: Lineage
    publisher: Publisher
    reporter: Reporter
    artifacts: Artifacts | None = None


class Session:
    """The position of a run between two commits, and the parts that move it on."""

    def __init__(self, config: RunConfig, parts: Parts, stores: Stores) -> None:
        self.config = config
        self.parts = parts
        self.stores = stores
        self.iteration = 0
        self.sealed_at = 0
        self.fired = 0
        self.accepted: list[str] = []
        self.waiting = False
        self.recent: list[Episode] = []
        self.ended: list[Episode] = []
        self.baselines: dict[str, float] = {}
        self.references = references_of(config, None)
        self.slots = Slots()
        self.ahead: Played | None = None
        self.entries: list[Entry] = stores.bank.active()
        self.stats = stores.bank.stats()
        self.barred = barred(stores.bank)
        self.clusters = None if config.clusters is None else Clusters(config.clusters, stores.bank.clusters())
        self._index = None if config.bank is None else index_of(stores.bank, config, self.clusters)
        self._stale = False
        self.draft = Draft(revision=0)
        self.held = list(self.entries)
        self.seconds: dict[str, float] = {}
        self.since = perf_counter()

    def here(self) -> Position:
        """The present iteration."""
        return Position(self.draft.revision, self.iteration)

    def beyond(self) -> Position:
        """The next one."""
        return Position(self.draft.revision + self.commits_after(self.iteration + 1), self.iteration + 1)

    def key(self, stage: str, at: Position | None = None) -> Key:
        """Root of a stage's draws in an iteration; in this one where none is named."""
        at = at or self.here()
        return key(self.config.seed, at.revision, at.iteration, stage)

    def is_new(self) -> bool:
        """Whether revision 0 is still to be committed."""
        return self.draft.revision == 0

    def phase(self) -> Phase:
        """Where the schedule stands in this iteration."""
        return phase_of(self.config.schedule, self.iteration, len(self.entries))

    def learns(self) -> bool:
        """Whether the policy is updated in this iteration."""
        return self.parts.trainer is not None and self.phase().learns

    def evolves(self) -> bool:
        """Whether the bank learns from this iteration."""
        return self.config.bank is not None and self.phase().evolves

    def critic_learns_alone(self) -> bool:
        """Whether the policy still waits for its critic."""
        update = self.config.update
        return update is not None and update.critic is not None and self.iteration < update.critic.warmup

    def writer_is_due(self) -> bool:
        """Whether the bank is updated in this iteration (every Delta iterations, CoEvo-RL section 3.4)."""
        bank = self.config.bank
        return bank is not None and self.evolves() and (self.iteration + 1 - self.phase().since) % bank.every == 0

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
        return self.commits_after(self.iteration)

    def commits_after(self, iterations: int) -> bool:
        """Whether a revision ends when so many iterations are done."""
        return iterations % self.config.lineage.every == 0 or iterations == self.config.iterations

    def remember(self, episodes: Sequence[Episode]) -> None:
        """Keep what the iteration's episodes bring to an end for the commit, and for whoever learns from it."""
        self.ended = self.slots.finish(episodes)
        self.draft.episodes.extend(self.ended)
        if self.evolves():
            self.recent.extend(self.ended)
        else:
            self.fire()

    def fire(self) -> None:
        """Nothing so far is left for the writer."""
        self.recent.clear()
        self.fired = self.draft.revision

    def needs_a_person(self, decision: Decision) -> bool:
        """Whether a person is to decide about it."""
        return self.config.approval.admission == "person" and changes_anything(decision)

    def propose(self, pending: Pending) -> None:
        """Leave the bank as it is; the run goes no further than this revision until a person has decided."""
        self.draft.proposed = pending
        self.waiting = True

    def change(self, decision: Decision) -> None:
        """Change the bank of the revision in the making."""
        bank, draft = self.config.bank, self.draft
        assert bank is not None
        if (pools := self._pools()) is not None:
            associate(pools, decision.entries, self.recent)
        draft.judged.extend(decision.judged)
        draft.operations.extend(decision.operations)
        draft.entries |= {entry.id: entry for entry in decision.entries}
        held = {entry.id: entry for entry in self.entries} | draft.entries
        self.entries = [entry for entry in held.values() if entry.active]
        self.count(born([entry.id for entry in decision.entries], decision.utility, self.stats, bank.utility))

    def count(self, changed: Iterable[Stats]) -> None:
        """Counters of entries as they are from now on."""
        rows = {stats.id: stats for stats in changed}
        self.draft.stats |= rows
        self.stats |= rows
        self._stale = True

    def library(self) -> Library:
        """The active entries with their counters."""
        return Library(self.entries, self.stats, self.clusters, self.barred)

    def index(self) -> Index | None:
        """An index over the bank as it stands; None where there is no bank."""
        if self._stale:
            self._index, self._stale = self.index_with(()), False
        return self._index

    def index_with(self, extra: Sequence[Entry]) -> Index | None:
        """An index over the bank and some entries more, found as they would be once they are in it."""
        if self._index is None:
            return None
        return self._index.over([*self.entries, *extra], self.stats, self._pools_with(extra))

    def _pools(self) -> Clusters | None:
        """The clusters that retrieval reads; None where it reads none."""
        bank = self.config.bank
        return self.clusters if bank is not None and bank.retrieval.type == "cluster" else None

    def _pools_with(self, extra: Sequence[Entry]) -> Clusters | None:
        """Those clusters; where there are entries more, a copy that they belong to: only a decision links them."""
        pools = self._pools()
        if pools is None or not extra:
            return pools
        pools = pools.copy()
        associate(pools, extra, self.recent)
        return pools

    def updates(self) -> int:
        """Iterations that the policy and bank of the revision in the making have behind them, the present one too."""
        return 0 if self.is_new() else self.iteration + 1

    def shown_index(self, iterations: int) -> Index | None:
        """The index, unless the gates of retrieval are closed after so many iterations."""
        bank = self.config.bank
        return self.index() if bank and is_shown(bank.retrieval, iterations, len(self.entries)) else None

    def experience(self, at: Position) -> Experience:
        """What training attempts of an iteration are shown of the bank as it stands."""
        return recall(self.shown_index(at.iteration), self.key("retrieve", at))

    def recall(self, index: Index | None) -> Experience:
        """The answers of an index in this iteration."""
        return recall(index, self.key("retrieve"))

    def next_revision(self) -> None:
        """Begin the revision after this one; its clock starts now."""
        self.held, self.sealed_at = list(self.entries), self.iteration
        self.draft = Draft(revision=self.draft.revision + 1)
        if self.clusters is not None:
            self.clusters.forget_changes()
        self.accepted = []
        self.seconds.clear()
        self.since = perf_counter()
