"""Attempts as text for a model: numbered steps, all text quoted, within a number of characters."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coevo.memory.text import content_words
from coevo.records.episode import Episode, Turn
from coevo.records.inert import visible

LONGEST = 400
"""Maximum characters of one observation, action or feedback; the rest is left out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An attempt as a question shows it.

    Attributes:
        episode: the attempt.
        text: its transcript.
        steps: numbers of the steps in it, from 1.
    """

    episode: Episode
    text: str
    steps: frozenset[int]

    def action(self, step: int) -> str:
        """Action of a step, as one visible line."""
        return " ".join(visible(self.episode.turns[step - 1].action).split())

    @property
    def words(self) -> frozenset[str]:
        """Content words of all that it says, the instruction included."""
        said = (f"{turn.observation} {turn.action} {turn.feedback}" for turn in self.episode.turns)
        return frozenset(content_words(" ".join([self.episode.task.instruction, *said])))


def shown(episodes: Sequence[Episode], characters: int, verdict: bool = True) -> tuple[Shown, ...]:
    """Transcripts of attempts, which share the characters evenly.

    Args:
        episodes: attempts, at least one step each.
        characters: maximum characters of all transcripts.
        verdict: False leaves out the outcome and the feedback on the last action, which may name it.
    """
    each = characters // max(1, len(episodes))
    return tuple(_shown(number, episode, each, verdict) for number, episode in enumerate(episodes, 1))


def _shown(number: int, episode: Episode, characters: int, verdict: bool) -> Shown:
    outcome = f" ({'success' if episode.success else 'failure'})" if verdict else ""
    head = f"Attempt {number}{outcome}\nTask: {_quoted(episode.task.instruction)}\n"
    last = len(episode.turns)
    lines = [_step(n, turn, verdict or n < last) for n, turn in enumerate(episode.turns, 1)]
    kept = last_first([len(line) for line in lines], characters - len(head))
    return Shown(episode, head + "".join(_with_gaps(lines, kept)), frozenset(kept))


def _step(number: int, turn: Turn, answered: bool) -> str:
    feedback = f", feedback {_quoted(turn.feedback)}" if answered else ""
    return f"{number}. observed {_quoted(turn.observation)}, action {_quoted(turn.action)}{feedback}\n"


def _quoted(text: str) -> str:
    """Text as one JSON string: whatever it says, it cannot end the quotation."""
    line = " ".join(visible(text).split())
    return json.dumps(line if len(line) <= LONGEST else f"{line[:LONGEST]} ...", ensure_ascii=False)


def last_first(sizes: Sequence[int], room: int) -> list[int]:
    """Numbers of the steps that fit: the last first, as the outcome was decided there, and the first step."""
    left, kept = room - (sizes[0] if sizes else 0), [1] if sizes else []
    for number in range(len(sizes), 1, -1):
        left -= sizes[number - 1]
        if left < 0:
            break
        kept.append(number)
    return sorted(kept)


def _with_gaps(lines: Sequence[str], kept: Sequence[int]) -> Iterable[str]:
    before = 0
    for number in kept:
        if number > before + 1:
            yield f"(steps {before + 1} to {number - 1} are left out)\n"
        yield lines[number - 1]
        before = number
