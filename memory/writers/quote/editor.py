"""The built-in editor: operations on pools of entries by rule, without a model (ReflectAndEdit of JERP Eq. 26)."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from coevo.configs.bank.writer import QuoteEditorConfig
from coevo.memory.edit_operations import Operation
from coevo.memory.evidence.contrasts import contrasts, lessons
from coevo.memory.library import Library
from coevo.memory.text import content_words, terms, words
from coevo.memory.writers.writer import Edit, Evidence, Proposal
from coevo.records.entry import Entry, wording
from coevo.records.episode import Episode, Turn
from coevo.records.task import KeyFunction

WrittenOperation = tuple[Operation, Iterable[Episode]]
"""An operation and the episodes that support it."""
NEGATIONS = frozenset(["not", "no", "never", "nothing", "none", "nor", "cannot", "without"])
"""Words that negate a statement."""
Texts = dict[str, list[Episode]]


class Support:
    """Evidence of one pool's episodes about entries.

    Args:
        played: episodes of this iteration.
        earlier: successes of earlier iterations; they confirm or contradict, but earn no votes again.
    """

    def __init__(self, played: Sequence[Episode], earlier: Sequence[Episode] = ()) -> None:
        self._played = played
        self._earlier = {episode.id for episode in earlier}
        self._spelled: dict[str, str] = {}
        self._said: Texts = {}
        self._shown: Texts = {}
        for episode in (*earlier, *played):
            for lesson in lessons(episode, 0):
                text = self._spelled.setdefault(wording(lesson.entry.strategy), lesson.entry.strategy)
                self._said.setdefault(text, []).append(episode)
            for name in dict.fromkeys(name for turn in episode.turns for name in turn.retrieved):
                self._shown.setdefault(name, []).append(episode)

    def confirming(self, entry: Entry) -> list[Episode]:
        """Episodes, including earlier ones, with a lesson of the entry's wording."""
        return self._said.get(self._spelled.get(wording(entry.strategy), ""), [])

    def helped(self, entry: Entry) -> list[Episode]:
        """Successes with the entry in a prompt that confirmed it."""
        shown = {episode.id for episode in self._shown.get(entry.id, ())}
        found = (episode for episode in self.confirming(entry) if episode.id not in self._earlier)
        return [episode for episode in found if episode.success and episode.id in shown]

    def misled(self, entry: Entry) -> list[Episode]:
        """Failures that followed the entry; empty if any episode confirms it."""
        if self.confirming(entry):
            return []
        return [e for e in self._played if not e.success and any(follows(turn, entry, e) for turn in e.turns)]

    def corrections(self, entry: Entry) -> Iterator[tuple[str, list[Episode]]]:
        """Contradicting lessons of successes, with these successes; none if any episode confirms the entry."""
        if self.confirming(entry):
            return
        for text, episodes in self._said.items():
            apart = contradiction(text, entry.strategy)
            found = [e for e in episodes if apart and e.success and not apart & set(words(e.task.instruction))]
            if found:
                yield text, found


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


def follows(turn: Turn, entry: Entry, episode: Episode) -> bool:
    """Report whether a turn followed an entry in its prompt, judged by words.

    The entry mentions a content word of the instruction and no negation, and the action has a word that only the entry
    mentions.
    """
    asked, named = set(words(episode.task.instruction)), set(words(episode.task.scope))
    told = set(content_words(entry.strategy)) - named
    if not turn.valid or entry.id not in turn.retrieved or told & NEGATIONS or not told & asked:
        return False
    return bool((told - asked) & set(words(turn.action)))


def contradiction(one: str, other: str) -> frozenset[str]:
    """The two words by which two statements may contradict each other; empty if they cannot.

    The statements differ in a single word, and either this word is a negation on one side, or neither has a negation:
    two failures do not contradict each other, one object in two places does. Statements about two objects that an
    instruction names differ in a word of the instruction; the caller has to check that.
    """
    first, second = _tokens(one), _tokens(other)
    if len(first) != len(second):
        return frozenset()
    apart = [frozenset(pair) for pair in zip(first, second, strict=True) if pair[0] != pair[1]]
    if len(apart) != 1 or ({*first, *second} & NEGATIONS and not apart[0] & NEGATIONS):
        return frozenset()
    return apart[0]


@lru_cache(maxsize=4096)
def _tokens(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def duplicates(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Groups of two or more entries whose wordings have the same content words in the same order."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple(content_words(entry.strategy)), []).append(entry)
    return [group for group in groups.values() if len(group) > 1]
