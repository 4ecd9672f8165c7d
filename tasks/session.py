"""An open run: its position between two commits, its parts and its stores."""

from collections.abc import Sequence
from time import perf_counter
from typing import Protocol

from coevo.configs.run_config import RunConfig
from coevo.lineage.revision.code_version import code_of_run
from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank_state import BankState
from coevo.memory.retrieval.index import Index
from coevo.records.draws import Key, key
from coevo.records.entry import Entry
from coevo.records.episode import Episode, played
from coevo.tasks.gateway.session_selection import TakenSessions
from coevo.tasks.parts import Parts, Stores
from coevo.tasks.pending_revision import PendingRevision, PlayedBatch, Position
from coevo.tasks.play.retrieve import Experience, index_of, is_shown, recall
from coevo.tasks.play.vectorised_environments import VectorisedEnvironments
from coevo.tasks.revision_artifacts import read_source_tasks, references_of
from coevo.tasks.schedule import Due


class EpisodeSource(Protocol):
    """Source of episodes that others play."""

    def collect(self, session: "Session") -> PlayedBatch:
        """Wait for an iteration's episodes."""
        ...


class Session:
    """The position of a run between two commits, and the parts that move it on."""

    def __init__(self, config: RunConfig, parts: Parts, stores: Stores) -> None:
        self.config = config
        self.recorded = {
            "config": config.model_dump(mode="json"),
            "config_hash": config.digest(),
            **code_of_run(config).state(),
        }
        self.parts = parts
        self.stores = stores
        self.iteration = 0
        self.frozen_at = 0
        self.fired = 0
        self.accepted: list[str] = []
        self.weights: dict[str, str] = {}
        self.waiting = self.paced = False
        self.recent: list[Episode] = []
        self.ended: list[Episode] = []
        self.baselines: dict[str, float] = {}
        self.references = references_of(config, None)
        self.source_tasks = read_source_tasks(None)
        self.environments = VectorisedEnvironments()
        self.prefetched: PlayedBatch | None = None
        self.source: EpisodeSource | None = None
        self.taken = TakenSessions()
        self.bank = BankState.stored(stores.bank, config.bank, config.clusters)
        low, high = parts.env.reward_range
        self.bank.span = high - low
        self._index = None if config.bank is None else index_of(stores.bank, config, self.bank.clusters)
        self._indexed = self.bank.version
        self.pending = PendingRevision(revision=0)
        self.committed: list[Entry] = list(self.bank.entries)
        self.seconds: dict[str, float] = {}
        self.since = perf_counter()

    @property
    def here(self) -> Position:
        """The present iteration."""
        return Position(self.pending.revision, self.iteration)

    def beyond(self) -> Position:
        """The next one."""
        return Position(self.pending.revision + self.due.commit(), self.iteration + 1)

    def key(self, stage: str, at: Position | None = None) -> Key:
        """Root of a stage's draws in an iteration; in this one where none is named."""
        at = at or self.here
        return key(self.config.seed, at.revision, at.iteration, stage)

    @property
    def is_new(self) -> bool:
        """Return True if revision 0 is not committed yet."""
        return self.pending.revision == 0

    @property
    def due(self) -> Due:
        """Steps that are due in this iteration."""
        entries, trains = len(self.bank.entries), self.parts.trainer is not None
        return Due(self.config, self.pending.revision, self.iteration, entries, trains)

    def finish(self, episodes: Sequence[Episode]) -> None:
        """Keep the episodes that this iteration has ended: for the commit, for counters, and for the writer.

        Lost ones are for the commit alone.
        """
        ended = self.environments.finish(episodes)
        self.ended = played(ended)
        self.pending.episodes.extend(ended)
        if self.due.bank():
            self.recent.extend(episode for episode in ended if episode.teaches)
        else:
            self.fire()

    def fire(self) -> None:
        """Mark the episodes so far as used by the writer."""
        self.recent.clear()
        self.fired = self.pending.revision

    def wait_for(self, proposed: Pending) -> None:
        """Leave the bank as it is; the run stops after this revision until a person has decided."""
        self.pending.proposed = proposed
        self.waiting = True

    def index(self) -> Index | None:
        """An index over the bank as it stands; None where there is no bank."""
        if self._index is not None and self._indexed != self.bank.version:
            self._index, self._indexed = self.bank.over(self._index), self.bank.version
        return self._index

    def index_with(self, added: Sequence[Entry], removed: Sequence[Entry] = ()) -> Index | None:
        """An index over the bank and some candidates, found as if they had been admitted, without removed entries."""
        index = self.index()
        if index is None or not (added or removed):
            return index
        return self.bank.trying(added, self.recent, removed).over(index)

    @property
    def updates(self) -> int:
        """Iterations that the policy and bank of the revision in the making have behind them, the present one too."""
        return 0 if self.is_new else self.iteration + 1

    def shown_index(self, iterations: int) -> Index | None:
        """The index, unless the gates of retrieval are closed after so many iterations."""
        bank = self.config.bank
        return self.index() if bank and is_shown(bank.retrieval, iterations, len(self.bank.entries)) else None

    def experience(self, at: Position) -> Experience:
        """Experience of an iteration's training attempts, from the bank as it stands."""
        return recall(self.shown_index(at.iteration), self.key("retrieve", at))

    def recall(self, index: Index | None) -> Experience:
        """The answers of an index in this iteration."""
        return recall(index, self.key("retrieve"))

    def begin_clock(self, began: float, seconds: dict[str, float]) -> None:
        """Count the time since ``began``, at which the run was opened, towards this revision: it is preparation.

        Args:
            began: reading of ``perf_counter``.
            seconds: of the stages so far, by name; those of all later stages are added to it.
        """
        seconds["preparation"] = perf_counter() - began - sum(seconds.values())
        self.since, self.seconds = began, seconds

    def next_revision(self) -> None:
        """Begin the revision after this one; its clock starts now."""
        self.committed, self.frozen_at = list(self.bank.entries), self.iteration
        self.pending = PendingRevision(revision=self.pending.revision + 1)
        self.bank.settle()
        self.accepted = []
        self.seconds.clear()
        self.since = perf_counter()
