"""What episodes say of an entry: which of them bear it out, which were misled by it, and which know better.

Everything is read from text: an entry says what a lesson of an episode says (``memory.lessons``), or another thing of
the same matter. Nothing is known of any environment.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from memory.lessons import lessons
from memory.text import WORD, content_words, words
from records.entry import Entry
from records.episode import Episode, Turn

NEGATIONS = frozenset(["not", "no", "never", "nothing", "none", "nor", "cannot", "without"])
"""Words that turn a statement round."""

Texts = dict[str, list[Episode]]


class Testimony:
    """Episodes of one pool.

    Args:
        played: those to judge the entries by.
        earlier: successes of earlier firings; what they show counts as evidence, but nothing is credited to them again.
    """

    def __init__(self, played: Sequence[Episode], earlier: Sequence[Episode] = ()) -> None:
        self._played = played
        self._earlier = {episode.id for episode in earlier}
        self._said: Texts = {}
        self._shown: Texts = {}
        for episode in (*earlier, *played):
            for lesson in lessons(episode, 0):
                self._said.setdefault(lesson.entry.strategy, []).append(episode)
            for name in dict.fromkeys(name for turn in episode.turns for name in turn.retrieved):
                self._shown.setdefault(name, []).append(episode)

    def confirming(self, entry: Entry) -> list[Episode]:
        """Episodes, earlier ones too, in which the environment said what the entry says."""
        return self._said.get(entry.strategy, [])

    def helped(self, entry: Entry) -> list[Episode]:
        """Successes that were shown the entry and found it to be so."""
        shown = {episode.id for episode in self._shown.get(entry.id, ())}
        found = (episode for episode in self.confirming(entry) if episode.id not in self._earlier)
        return [episode for episode in found if episode.success and episode.id in shown]

    def misled(self, entry: Entry) -> list[Episode]:
        """Failures that did what the entry says; none where any episode confirms it."""
        if self.confirming(entry):
            return []
        return [e for e in self._played if not e.success and any(follows(turn, entry, e) for turn in e.turns)]

    def corrections(self, entry: Entry) -> Iterator[tuple[str, list[Episode]]]:
        """What successes found in place of what an entry says, with those successes; nothing where any confirms it."""
        if self.confirming(entry):
            return
        for text, episodes in self._said.items():
            apart = contradiction(text, entry.strategy)
            found = [e for e in episodes if apart and e.success and not apart & set(words(e.task.instruction))]
            if found:
                yield text, found


def follows(turn: Turn, entry: Entry, episode: Episode) -> bool:
    """Whether a turn did what an entry in its prompt says, as far as words tell.

    The entry is about something that the instruction names, it does not warn of anything, and the action has a word
    that the entry alone brings in.
    """
    asked, named = set(words(episode.task.instruction)), set(words(episode.task.scope))
    told = set(content_words(entry.strategy)) - named
    if not turn.valid or entry.id not in turn.retrieved or told & NEGATIONS or not told & asked:
        return False
    return bool((told - asked) & set(words(turn.action)))


def contradiction(one: str, other: str) -> frozenset[str]:
    """The two words in which two statements differ that may contradict each other; none where they cannot.

    They differ in a single word, and one of the two is a negation, or there is none anywhere: that two things fail is
    no contradiction, that something is in two places is one. Statements about two things that an instruction names
    differ in a word of the instruction; that is for the caller to see.
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
    return tuple(WORD.findall(text.lower()))


def duplicates(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Entries whose wordings have the same content words in the same order, where there are two or more."""
    groups: dict[tuple[str, ...], list[Entry]] = {}
    for entry in entries:
        groups.setdefault(tuple(content_words(entry.strategy)), []).append(entry)
    return [group for group in groups.values() if len(group) > 1]
