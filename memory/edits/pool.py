"""One pool of entries with their scores, and the effect of edit operations on it (JERP Eq. 27)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from coevo.configs.bank.admission_config import EditsAdmissionConfig
from coevo.memory.edits.rule import Rule, Sources, best_first, merged, new
from coevo.memory.edits.syntax import Operation, OperationKind, RefusedError
from coevo.memory.validate import shortened
from coevo.records.entry import Entry, entry_id, wording


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
