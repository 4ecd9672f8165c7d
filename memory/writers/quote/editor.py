"""The built-in editor: operations on pools of entries by rule, without a model (ReflectAndEdit of JERP Eq. 26)."""

from collections.abc import Iterable, Iterator, Sequence

from coevo.configs.bank.writer import QuoteEditorConfig
from coevo.memory.edits.syntax import Operation
from coevo.memory.evidence.contrasts import contrasts
from coevo.memory.evidence.support import Support, duplicates
from coevo.memory.library import Library
from coevo.memory.writers.writer import Edit, Evidence, Proposal
from coevo.records.entry import Entry, wording
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

WrittenOperation = tuple[Operation, Iterable[Episode]]
"""An operation and the episodes that support it."""


class Editor:
    """Writer that compares the episodes of each pool with its entries and with earlier successes.

    It reads only the text of episodes and the key of their tasks. Its additions and corrections quote feedback.
    """

    def __init__(self, config: QuoteEditorConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """At most ``config.operations`` operations for each pool with an episode, in the order of the episodes."""
        pools: dict[str, list[Episode]] = {}
        for episode in evidence.episodes:
            pools.setdefault(self._key(episode.task), []).append(episode)
        edits = [
            Edit(scope, operation.line(), tuple(dict.fromkeys(episode.id for episode in episodes)))
            for scope, played in pools.items()
            for operation, episodes in self._operations(scope, played, evidence)
        ]
        return Proposal(edits=tuple(edits), counts={"pools": float(len(pools)), "operations": float(len(edits))})

    def _operations(self, scope: str, played: Sequence[Episode], evidence: Evidence) -> list[WrittenOperation]:
        held = [entry for entry in evidence.library.entries if entry.scope == scope]
        earlier = evidence.references.of(scope).successes
        support = Support(played, earlier)
        corrected = dict(_corrections(held, support))
        said = [
            *corrected.values(),
            *_votes([entry for entry in held if entry.id not in corrected], support),
            *_mergers([entry for entry in held if entry.id not in corrected], evidence.library),
            *_additions(held, [said[0].text for said in corrected.values()], _contrasted(played, earlier, evidence)),
        ]
        return said[: self._config.operations]


def _corrections(held: Sequence[Entry], support: Support) -> Iterator[tuple[str, WrittenOperation]]:
    """Corrections by id of entries that successes contradict; each wording is used for one entry only."""
    taken = {wording(entry.strategy) for entry in held}
    for entry in held:
        for text, episodes in support.corrections(entry):
            if wording(text) not in taken:
                taken.add(wording(text))
                yield entry.id, (Operation("EDIT", (entry.id,), text), episodes)
                break


def _votes(held: Iterable[Entry], support: Support) -> Iterator[WrittenOperation]:
    """At most one vote per entry: up if it helped, down if it misled or is contradicted without a correction."""
    for entry in held:
        against = [*support.misled(entry), *(e for _, found in support.corrections(entry) for e in found)]
        if helped := support.helped(entry):
            yield Operation("UPVOTE", (entry.id,)), helped
        elif against:
            yield Operation("DOWNVOTE", (entry.id,)), against


def _mergers(held: Iterable[Entry], library: Library) -> Iterator[WrittenOperation]:
    """Mergers of duplicates, with the wording of the entry of highest utility, the older of equals."""
    for group in duplicates(held):
        ranked = sorted(group, key=lambda entry: (-library.utility[library.row_of[entry.id]], entry.created, entry.id))
        yield Operation("MERGE", tuple(entry.id for entry in ranked), ranked[0].strategy), ()


def _contrasted(
    played: Sequence[Episode], earlier: Iterable[Episode], evidence: Evidence
) -> Iterator[WrittenOperation]:
    """Lessons of the episodes, compared with earlier successes at the same tasks."""
    tasks = {episode.task.id for episode in played}
    known = [episode for episode in earlier if episode.task.id in tasks]
    by_id = {episode.id: episode for episode in (*known, *played)}
    for contrast in contrasts([*known, *played], evidence.revision):
        for lesson in contrast.lessons:
            yield Operation("ADD", (), lesson.strategy), [by_id[source] for source in lesson.sources]


def _additions(
    held: Iterable[Entry], corrections: Iterable[str], found: Iterable[WrittenOperation]
) -> Iterator[WrittenOperation]:
    """Lessons that the pool lacks and no correction adds, each once, with all episodes that taught it."""
    taught: dict[str, tuple[Operation, list[Episode]]] = {}
    for operation, episodes in found:
        taught.setdefault(wording(operation.text), (operation, []))[1].extend(episodes)
    for text in {*corrections, *(entry.strategy for entry in held)}:
        taught.pop(wording(text), None)
    yield from taught.values()


def writer(config: QuoteEditorConfig, key: KeyFunction) -> Editor:
    """The editor with the settings of a configuration."""
    return Editor(config, key)
