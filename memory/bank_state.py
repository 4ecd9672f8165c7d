"""State of a bank between two commits: entries, counters and clusters in memory, and the rows that have changed."""

from collections.abc import Iterable, Mapping, Sequence

from coevo.configs.bank.bank_config import BankConfig
from coevo.configs.bank.retrieval_config import ClustersConfig
from coevo.memory.admission.admission import Decision
from coevo.memory.admission.rulings import barred
from coevo.memory.bank.bank import BankView
from coevo.memory.bank.change import BankChange, Judged, Ruling
from coevo.memory.clusters import Clusters, associate
from coevo.memory.library import AdmissionState, Library
from coevo.memory.retirement_counters import RetirementCounter
from coevo.memory.retrieval.index import Index
from coevo.memory.stats import Stats, initial_stats, tally
from coevo.memory.trials import OnTrial, begun
from coevo.records.entry import Entry, Verdict
from coevo.records.episode import Episode


class Measurements:
    """Measurements by id of the lesson.

    One counts if it concerns one lesson alone and has a bound: without, it says nothing, or nobody asked. They begin
    anew where a lesson enters and where it leaves: those of a candidate say what it adds to the bank, those of an entry
    what the bank lacks without it.
    """

    def __init__(self) -> None:
        self._looks: dict[str, set[Verdict]] = {}
        self._since: dict[str, tuple[bool, int]] = {}

    @classmethod
    def stored(cls, bank: BankView) -> "Measurements":
        """Read the measurements of a stored bank."""
        found, rows = cls(), bank.rows()
        columns = (rows[name].to_pylist() for name in ("id", "created", "retired"))
        for name, created, retired in zip(*columns, strict=True):
            found._move(name, created, retired)
        found._add(bank.judged(), inside=False)
        found._add(bank.left_out(), inside=True)
        return found

    def of(self, lesson: str) -> list[Verdict]:
        """Measurements of a lesson, the oldest first."""
        return sorted(self._looks.get(lesson, ()), key=_in_order)

    def count(self, decision: Decision) -> None:
        """Count the measurements of a decision, and begin anew for entries that it lets in or out."""
        self._add(decision.judged, inside=False)
        self._add(decision.left_out, inside=True)
        for entry in decision.entries:
            self._move(entry.id, entry.created, entry.retired)

    def _move(self, lesson: str, created: int, retired: int) -> None:
        since = (retired < 0, max(created, retired))
        if self._since.get(lesson) != since:
            self._since[lesson] = since
            self._looks.pop(lesson, None)

    def _add(self, judged: Iterable[Judged], inside: bool) -> None:
        """Note measurements of entries inside of the bank, or of candidates outside."""
        alone = (each.verdict for each in judged if len(each.candidates) == 1 and each.verdict.bound is not None)
        for verdict in alone:
            (lesson,) = verdict.candidates
            held, since = self._since.get(lesson, (False, -1))
            if held == inside and verdict.revision > since:
                # A revision's table holds equal measurements once, in no particular order; so does this.
                self._looks.setdefault(lesson, set()).add(verdict)


def after(entries: Iterable[Entry], changed: Iterable[Entry]) -> list[Entry]:
    """Active entries of a bank once some of its entries have entered, changed or left."""
    held = {entry.id: entry for entry in entries} | {entry.id: entry for entry in changed}
    return [entry for entry in held.values() if entry.active]


class BankState:
    """A bank in memory, which decisions and episodes change.

    The loop, a person's decision and Discovery@k apply decisions here; Discovery@k does so to copies.

    Args:
        config: of the bank; None where the run has none, and nothing is changed.
        entries: active ones.
        stats: counters by entry id.
        clusters: observation clusters, where the run computes them.
        barred: ids under which nothing enters.

    Attributes:
        version: number that grows with every change.
        trials: candidates on trial, in the order in which their trials began; part of no table.
        retirement_counters: of entries at the last firing, by id, for retirement; part of no table.
        measurements: those of each lesson by replay, from the table of verdicts.
        span: highest minus lowest reward of an episode.
    """

    def __init__(
        self,
        config: BankConfig | None,
        entries: Iterable[Entry] = (),
        stats: Mapping[str, Stats] | None = None,
        clusters: Clusters | None = None,
        barred: frozenset[str] = frozenset(),
    ) -> None:
        self.config = config
        self.entries = list(entries)
        self.stats = dict(stats or {})
        self.clusters = clusters
        self.barred = barred
        self.trials: list[OnTrial] = []
        self.retirement_counters: dict[str, RetirementCounter] = {}
        self.measurements = Measurements()
        self.span = 1.0
        self.version = 0
        self.settle()

    @classmethod
    def stored(cls, bank: BankView, config: BankConfig | None, clusters: ClustersConfig | None) -> "BankState":
        """The latest version of a stored bank."""
        found = None if clusters is None else Clusters(clusters, bank.clusters())
        state = cls(config, bank.active(), bank.stats(), found, barred(bank))
        state.measurements = Measurements.stored(bank)
        return state

    @property
    def pools(self) -> Clusters | None:
        """Clusters that retrieval reads; None where it reads none."""
        return self.clusters if self.config is not None and self.config.retrieval.type == "cluster" else None

    def copy(self) -> "BankState":
        """A state with the same content and no changes; changing it leaves this one as it is."""
        pools = None if self.pools is None else self.pools.copy()
        return BankState(self.config, self.entries, self.stats, pools, self.barred)

    def trying(self, added: Sequence[Entry], episodes: Sequence[Episode], removed: Sequence[Entry] = ()) -> "BankState":
        """A copy that also holds candidates, found as if they had been admitted, and lacks removed entries.

        ``episodes`` are the candidates' sources.
        """
        copy, gone = self.copy(), {entry.id for entry in removed}
        copy.entries = [entry for entry in copy.entries if entry.id not in gone] + list(added)
        if copy.pools is not None:
            associate(copy.pools, added, episodes)
        return copy

    def apply(self, decision: Decision, episodes: Sequence[Episode]) -> None:
        """Carry out a decision; ``episodes`` are those that the candidates were written from."""
        assert self.config is not None
        if self.pools is not None:
            associate(self.pools, decision.entries, episodes)
        self._judged.extend(decision.judged)
        self._left_out.extend(decision.left_out)
        self._rulings.extend(decision.operations)
        self.measurements.count(decision)
        self._entries |= {entry.id: entry for entry in decision.entries}
        self.entries = after(self.entries, decision.entries)
        entered = [entry.id for entry in decision.entries]
        self._count(initial_stats(entered, decision.utility, self.stats, self.config.utility))

    def proceed(self, decision: Decision, episodes: Sequence[Episode]) -> None:
        """Begin and end trials of candidates; ``episodes`` are those that the candidates were written from."""
        ended = set(decision.ended)
        self.trials = [trial for trial in self.trials if trial.entry.id not in ended]
        if decision.begun:
            self.trials += begun(decision.begun, episodes)

    def update_statistics(self, episodes: Sequence[Episode], utilities: bool) -> None:
        """Count the episodes that saw entries, in order; change utilities, too, where wanted (RetroAgent Eq. 8).

        Candidates on trial are no entries, and have no counters.
        """
        assert self.config is not None
        counted = tally(self.stats, episodes, self.config.utility if utilities else None)
        outside = {trial.entry.id for trial in self.trials}
        self._count(stats for stats in counted if stats.id not in outside)

    def library(self) -> Library:
        """The active entries with their counters, as writers and admissions read them."""
        admission = AdmissionState(self.barred, self.trials, self.measurements.of, self.span)
        return Library(self.entries, self.stats, self.clusters, admission)

    def over(self, index: Index) -> Index:
        """An index over this state that shares what ``index`` has computed."""
        return index.over(self.entries, self.stats, self.pools)

    def change(self) -> BankChange:
        """Rows that have changed since the last ``settle``."""
        clusters = () if self.clusters is None else self.clusters.changed()
        entries, stats = tuple(self._entries.values()), tuple(self._stats.values())
        judged, left_out = tuple(self._judged), tuple(self._left_out)
        return BankChange(entries, stats, judged, left_out, clusters, tuple(self._rulings))

    def settle(self) -> None:
        """Forget which rows have changed: they are committed, or will be."""
        self._entries: dict[str, Entry] = {}
        self._stats: dict[str, Stats] = {}
        self._judged: list[Judged] = []
        self._left_out: list[Judged] = []
        self._rulings: list[Ruling] = []
        if self.clusters is not None:
            self.clusters.forget_changes()

    def _count(self, changed: Iterable[Stats]) -> None:
        rows = {stats.id: stats for stats in changed}
        self._stats |= rows
        self.stats |= rows
        self.version += 1


def _in_order(look: Verdict) -> tuple[float, ...]:
    return look.revision, look.pairs, look.difference, look.stderr, look.bound or 0.0, look.seen_share or 0.0
