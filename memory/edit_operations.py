"""Edit operations on a pool of entries: their text, the rule of their effect, and the pool (JERP Eq. 26 and 27)."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast, get_args

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.memory.text import MAX_FIELD_CHARS, clean, content_words
from coevo.memory.validate import shortened
from coevo.records.entry import Entry, entry_id, wording
from coevo.records.inert import flaw

OperationKind = Literal["ADD", "EDIT", "UPVOTE", "DOWNVOTE", "MERGE"]
KINDS: tuple[OperationKind, ...] = get_args(OperationKind)
MAX_LINE_CHARS = 4096
"""Most characters of a line; the longest text takes less, however it is escaped."""
_LINE = re.compile(rf"\s*({'|'.join(KINDS)})\s*\((.*)\)\s*")
MAX_SOURCES = 64
"""Most source episodes of an entry; the earliest are kept."""
Sources = tuple[str, ...]


class RefusedError(ValueError):
    """An operation that cannot be applied; the message gives the reason on one line."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One edit operation.

    Attributes:
        kind: kind of the operation.
        targets: ids of the entries concerned, without repetition; empty for ADD.
        text: new wording; empty for votes.
    """

    kind: OperationKind
    targets: tuple[str, ...] = ()
    text: str = ""

    def line(self) -> str:
        """Format the operation; ``parse`` reads it back."""
        target: list[Any] = [list(self.targets)] if self.kind == "MERGE" else list(self.targets)
        arguments = [*target, self.text] if self.text else target
        return f"{self.kind}({', '.join(json.dumps(argument, ensure_ascii=False) for argument in arguments)})"


def parse(line: str) -> Operation:
    """Parse one line.

    Raises:
        RefusedError: the line is not an operation, or no pool could accept its text.
    """
    if len(line) > MAX_LINE_CHARS:
        raise RefusedError(f"is longer than {MAX_LINE_CHARS} characters")
    found = _LINE.fullmatch(line)
    if found is None:
        raise RefusedError(f"is no operation: there are {', '.join(KINDS)}, each with its arguments in parentheses")
    return _FORMS[cast(OperationKind, found[1])](_arguments(found[2]))


def _arguments(text: str) -> list[Any]:
    try:
        return cast(list[Any], json.loads(f"[{text}]"))
    except (ValueError, RecursionError):
        raise RefusedError("has arguments that are not JSON: ids and text stand in double quotes") from None


def _add(arguments: list[Any]) -> Operation:
    match arguments:
        case [str(text)]:
            return Operation("ADD", (), _wording(text))
    raise RefusedError("does not fit ADD(text)")


def _edit(arguments: list[Any]) -> Operation:
    match arguments:
        case [str(target), str(text)]:
            return Operation("EDIT", (target,), _wording(text))
    raise RefusedError("does not fit EDIT(id, text)")


def _vote(kind: OperationKind) -> Callable[[list[Any]], Operation]:
    def read(arguments: list[Any]) -> Operation:
        match arguments:
            case [str(target)]:
                return Operation(kind, (target,))
        raise RefusedError(f"does not fit {kind}(id)")

    return read


def _merge(arguments: list[Any]) -> Operation:
    match arguments:
        case [list(targets), str(text)] if all(isinstance(target, str) for target in targets):
            different = tuple(dict.fromkeys(targets))
            if len(different) < 2:
                raise RefusedError(f"merges {len(different)}: two or more different entries can be merged")
            return Operation("MERGE", different, _wording(text))
    raise RefusedError("does not fit MERGE([id, id, ...], text)")


_FORMS: Mapping[OperationKind, Callable[[list[Any]], Operation]] = {
    "ADD": _add,
    "EDIT": _edit,
    "UPVOTE": _vote("UPVOTE"),
    "DOWNVOTE": _vote("DOWNVOTE"),
    "MERGE": _merge,
}


def _wording(text: str) -> str:
    """Normalize blanks of a text; refuse texts that are not valid in an entry."""
    problem = flaw(text)
    if problem is not None:
        raise RefusedError(f"has a text that {problem}")
    line = " ".join(text.split())
    if len(line) > MAX_FIELD_CHARS:
        raise RefusedError(f"has a text of {len(line)} characters: {MAX_FIELD_CHARS} are the most")
    if not content_words(line):
        raise RefusedError("has a text that says nothing")
    return line


@dataclass(frozen=True, slots=True)
class Rule:
    """An entry and its score (z_i and s_i of JERP Eq. 9)."""

    entry: Entry
    score: float

    def voted(self, step: float) -> "Rule":
        """Return the rule with its score changed by ``step``."""
        return replace(self, score=self.score + step)

    def reworded(self, text: str, sources: Sources, revision: int) -> "Rule":
        """Return the rule with another wording, and with its id, score and history.

        Condition and example of the old wording are dropped.
        """
        joined = _joined(self.entry.sources, sources)
        return replace(self, entry=_worded(replace(self.entry, sources=joined, edited=revision), text))


class Pool:
    """The active entries of one key, by id.

    An edited entry keeps its id and its score, and with them its history. Of merged entries, the one with the highest
    score (the older of equals) stays under its id; the others leave.
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
        scope: key of the pool.
        rules: entries of the pool.
        elsewhere: keys of the entries of other pools, by id.
        config: steps and limits of scores.
        revision: revision of the edits.
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
        """Apply one operation.

        Args:
            operation: parsed operation.
            sources: ids of the episodes that support it.

        Returns:
            Ids of the entries concerned, the remaining one first.

        Raises:
            RefusedError: the operation cannot be applied; the pool is unchanged.
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
        """Remove entries below the threshold, then the lowest beyond the capacity; yield (id, reason) of each."""
        config = self._config
        for rule in self._ranked():
            if rule.score < config.threshold:
                yield self._leave(rule.entry.id), f"score {rule.score:g} is below {config.threshold:g}"
        for rule in self._ranked()[config.capacity :]:
            yield self._leave(rule.entry.id), f"score {rule.score:g} is the lowest beyond {config.capacity} entries"

    def entries(self) -> list[Entry]:
        """New, edited and retired entries, by id."""
        now = {name: rule.entry for name, rule in self.rules.items()} | self._left
        before = {name: rule.entry for name, rule in self._before.items()}
        return [now[name] for name in sorted(now) if now[name] != before.get(name)]

    def scores(self) -> dict[str, float]:
        """Changed scores, by id."""
        old = {name: rule.score for name, rule in self._before.items()}
        return {name: rule.score for name, rule in sorted(self.rules.items()) if rule.score != old.get(name)}

    def _add(self, operation: Operation, sources: Sources) -> tuple[str, ...]:
        name = self._fresh_id(operation.text)
        self.rules[name] = new(name, operation.text, self.scope, sources, self._revision, self._config.initial)
        return (name,)

    def _edit(self, operation: Operation, sources: Sources) -> tuple[str, ...]:
        (target,) = operation.targets
        self.rules[target] = self.rules[target].reworded(operation.text, sources, self._revision)
        return (target,)

    def _vote(self, operation: Operation, sources: Sources) -> tuple[str, ...]:
        (target,) = operation.targets
        step = self._config.up if operation.kind == "UPVOTE" else -self._config.down
        self.rules[target] = self.rules[target].voted(step)
        return (target,)

    def _merge(self, operation: Operation, sources: Sources) -> tuple[str, ...]:
        rules = best_first([self.rules[target] for target in operation.targets])
        first, *others = (rule.entry.id for rule in rules)
        self.rules[first] = merged(rules, operation.text, sources, self._revision)
        return (first, *map(self._leave, others))

    _ACTIONS: Mapping[OperationKind, Callable[["Pool", Operation, Sources], tuple[str, ...]]] = {
        "ADD": _add,
        "EDIT": _edit,
        "UPVOTE": _vote,
        "DOWNVOTE": _vote,
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
        """Refuse a wording that the pool already has; a merger may keep that of a merged entry."""
        said, own = wording(operation.text), operation.targets
        for name, rule in self.rules.items() if said else ():
            text = rule.entry.strategy
            # An edit may correct the spelling of its entry.
            known = operation.kind == "EDIT" and text == operation.text if name in own else wording(text) == said
            if known:
                raise RefusedError(f"says what entry {name} says already")

    def _leave(self, name: str) -> str:
        self._left[name] = replace(self.rules.pop(name).entry, retired=self._revision)
        return name

    def _fresh_id(self, text: str) -> str:
        """Id of a wording; another one if an edited entry still has the wording's id."""
        taken = self.rules.keys() | self._left.keys()
        name, number = entry_id(self.scope, text), 1
        while name in taken or name in self._elsewhere:
            name, number = entry_id(self.scope, f"{text}\n{number}"), number + 1
        return name

    def _ranked(self) -> list[Rule]:
        """Rules by score, best first; among equals the later edit, then the lower id, as in retrieval."""
        rules = sorted(self.rules.values(), key=lambda rule: rule.entry.id)
        return sorted(rules, key=lambda rule: (-rule.score, -rule.entry.edited))


def new(name: str, text: str, scope: str, sources: Sources, revision: int, score: float) -> Rule:
    """Create a rule."""
    entry = Entry(name, "", "", "", "", scope, "train", _joined(sources), revision, revision)
    return Rule(_worded(entry, text), score)


def merged(rules: Sequence[Rule], text: str, sources: Sources, revision: int) -> Rule:
    """Merge rules into the one with the highest score, the older of equals, with the given wording."""
    best = best_first(rules)[0]
    taught = _joined(*(rule.entry.sources for rule in best_first(rules)), sources)
    if best.entry.strategy != text:
        return best.reworded(text, taught, revision)
    return replace(best, entry=replace(best.entry, sources=taught, edited=revision))


def best_first(rules: Sequence[Rule]) -> list[Rule]:
    """Sort rules by score, the older of equals first."""
    return sorted(rules, key=lambda rule: (-rule.score, rule.entry.created, rule.entry.id))


def _worded(entry: Entry, text: str) -> Entry:
    keywords = clean(" ".join(content_words(text)))
    return replace(entry, strategy=text, condition="", example="", keywords=keywords)


def _joined(*sources: Sources) -> Sources:
    return tuple(dict.fromkeys(source for each in sources for source in each))[:MAX_SOURCES]
