"""Support of entries in episodes: which confirm an entry, which were misled by it, and which contradict it.

Everything is read from text: an entry has the wording of an episode's lesson
(``coevo.memory.evidence.episode_lessons``), or a contradicting one. Nothing depends on an environment.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from coevo.memory.evidence.episode_lessons import lessons
from coevo.memory.text import content_words, terms, words
from coevo.records.entry import Entry, wording
from coevo.records.episode import Episode, Turn

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
