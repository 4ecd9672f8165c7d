"""One pool of entries with their scores, while the operations of a firing are carried out on it (JERP Eq. 27)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from configs.admission import EditsAdmissionConfig
from memory.edits.syntax import Kind, Operation, RefusedError
from memory.text import clean, content_words
from memory.vetting import shortened
from records.entry import Entry, entry_id

MOST_SOURCES = 64
"""Most source episodes that an entry keeps, the earliest ones."""


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry and its score (z_i and s_i of JERP Eq. 9)."""

    entry: Entry
    score: float


class Pool:
    """The active entries of one key, by id.

    An edited entry keeps its id and its score, so that its history goes on. Of merged entries the one with the highest
    score goes on under its id, the older of equals; the others leave.
    """

    def __init__(
        self,
        scope: str,
        rules: Iterable[Rule],
        elsewhere: Mapping[str, str],
        config: EditsAdmissionConfig,
        revision: int,
    ) -> None:
        """Args:
        scope: its key.
        rules: what it holds.
        elsewhere: keys of the entries of other pools, by id.
        config: steps and limits of scores.
        revision: the one in the making.
        """
        self.scope = scope
        self.rules = {rule.entry.id: rule for rule in rules}
        self._before = dict(self.rules)
        self._left: dict[str, Entry] = {}
        self._done: set[Operation] = set()
        self._elsewhere = elsewhere
        self._config = config
        self._revision = revision

    def apply(self, operation: Operation, sources: Sequence[str]) -> tuple[str, ...]:
        """Carry out one operation.

        Args:
            operation: as it was read.
            sources: ids of the episodes that it was drawn from.

        Returns:
            Ids of the entries concerned, first the one that goes on.

        Raises:
            RefusedError: it cannot be done; the pool is as it was.
        """
        if operation in self._done:
            raise RefusedError("was done before in this revision")
        for target in operation.targets:
            self._require(target)
        self._refuse_known(operation)
        if operation.kind in ("ADD", "EDIT") and not sources:
            raise RefusedError("was drawn from no episode")
        concerned = self._ACTIONS[operation.kind](self, operation, tuple(sources))
        self._done.add(operation)
        return concerned

    def prune(self) -> Iterator[tuple[str, str]]:
        """Take out what has too low a score, then the lowest beyond the capacity; (id, why) of each."""
        config = self._config
        for rule in self._ranked():
            if rule.score < config.threshold:
                yield self._leave(rule.entry.id), f"score {rule.score:g} is below {config.threshold:g}"
        for rule in self._ranked()[config.capacity :]:
            yield self._leave(rule.entry.id), f"score {rule.score:g} is the lowest beyond {config.capacity} entries"

    def entries(self) -> list[Entry]:
        """Rows that differ from those of before: new, edited and retired entries, by id."""
        now = {name: rule.entry for name, rule in self.rules.items()} | self._left
        before = {name: rule.entry for name, rule in self._before.items()}
        return [now[name] for name in sorted(now) if now[name] != before.get(name)]

    def scores(self) -> dict[str, float]:
        """Scores that differ from those of before, by id."""
        old = {name: rule.score for name, rule in self._before.items()}
        return {name: rule.score for name, rule in sorted(self.rules.items()) if rule.score != old.get(name)}

    def _add(self, operation: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        name, revision = self._fresh_id(operation.text), self._revision
        entry = Entry(name, "", "", "", "", self.scope, "train", sources[:MOST_SOURCES], revision, revision)
        self.rules[name] = Rule(_worded(entry, operation.text), self._config.initial)
        return (name,)

    def _edit(self, operation: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        (target,) = operation.targets
        rule = self.rules[target]
        entry = replace(rule.entry, sources=_joined(rule.entry.sources, sources), edited=self._revision)
        self.rules[target] = replace(rule, entry=_worded(entry, operation.text))
        return (target,)

    def _upvote(self, operation: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        return self._vote(operation, self._config.up)

    def _downvote(self, operation: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        return self._vote(operation, -self._config.down)

    def _vote(self, operation: Operation, step: float) -> tuple[str, ...]:
        (target,) = operation.targets
        self.rules[target] = replace(self.rules[target], score=self.rules[target].score + step)
        return (target,)

    def _merge(self, operation: Operation, sources: tuple[str, ...]) -> tuple[str, ...]:
        merged = sorted((self.rules[target] for target in operation.targets), key=_oldest_best)
        first, *others = (rule.entry for rule in merged)
        taught = _joined(*(entry.sources for entry in (first, *others)), sources)
        entry = replace(first, sources=taught, edited=self._revision)
        worded = entry if entry.strategy == operation.text else _worded(entry, operation.text)
        self.rules[first.id] = Rule(worded, merged[0].score)
        return (first.id, *(self._leave(entry.id) for entry in others))

    _ACTIONS: Mapping[Kind, Callable[["Pool", Operation, tuple[str, ...]], tuple[str, ...]]] = {
        "ADD": _add,
        "EDIT": _edit,
        "UPVOTE": _upvote,
        "DOWNVOTE": _downvote,
        "MERGE": _merge,
    }

    def _require(self, target: str) -> None:
        if target in self.rules:
            return
        if target in self._left:
            raise RefusedError(f"names entry {target}, which was merged before in this revision")
        if target in self._elsewhere:
            raise RefusedError(f"names entry {target} of another pool, {shortened(self._elsewhere[target])}")
        raise RefusedError(f"names {shortened(target)}, which is no entry of the pool")

    def _refuse_known(self, operation: Operation) -> None:
        """One wording stands in a pool once; a merger may keep that of one of the merged."""
        free = operation.targets if operation.kind == "MERGE" else ()
        for name, rule in self.rules.items():
            if operation.text and rule.entry.strategy == operation.text and name not in free:
                raise RefusedError(f"says what entry {name} says already")

    def _leave(self, name: str) -> str:
        self._left[name] = replace(self.rules.pop(name).entry, retired=self._revision)
        return name

    def _fresh_id(self, text: str) -> str:
        """The id of this wording; another one where an entry that was edited away from it has kept that."""
        taken = self.rules.keys() | self._left.keys()
        name, number = entry_id(self.scope, text), 1
        while name in taken or name in self._elsewhere:
            name, number = entry_id(self.scope, f"{text}\n{number}"), number + 1
        return name

    def _ranked(self) -> list[Rule]:
        """By score, best first; of equals the later edit, then the lower id, as retrieval ranks them."""
        rules = sorted(self.rules.values(), key=lambda rule: rule.entry.id)
        return sorted(rules, key=lambda rule: (-rule.score, -rule.entry.edited))


def _oldest_best(rule: Rule) -> tuple[float, int, str]:
    return -rule.score, rule.entry.created, rule.entry.id


def _worded(entry: Entry, text: str) -> Entry:
    """The entry with another wording; what was said of the old one's use no longer holds."""
    keywords = clean(" ".join(content_words(text)))
    return replace(entry, strategy=text, condition="", example="", keywords=keywords)


def _joined(*sources: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source for each in sources for source in each))[:MOST_SOURCES]
