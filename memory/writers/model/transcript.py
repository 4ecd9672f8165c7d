"""Attempts as text for a model: numbered steps, all text quoted, within a number of tokens."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from coevo.memory.text import content_words
from coevo.records.episode import Episode
from coevo.records.inert import visible

SHORTENED = (3200, 1600, 800, 400)
"""Maximum characters of an observation, action or feedback, tried in this order before any step is left out."""
SHORTEST = (400, 100, 25)
"""Maximum characters where steps are left out: the longest with which the first and the last step fit."""

SizeFunction = Callable[[str], int]
"""Function that counts the tokens of a text."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An attempt as a question shows it.

    Attributes:
        episode: the attempt.
        text: its transcript.
        steps: numbers of the steps in it, from 1.
        shortened: number of texts in these steps that are not shown to their end.
    """

    episode: Episode
    text: str
    steps: frozenset[int]
    shortened: int = 0

    def action(self, step: int) -> str:
        """Action of a step, as one visible line."""
        return " ".join(visible(self.episode.turns[step - 1].action).split())

    @property
    def words(self) -> frozenset[str]:
        """Content words of all that it says, the instruction included."""
        said = (f"{turn.observation} {turn.action} {turn.feedback}" for turn in self.episode.turns)
        return frozenset(content_words(" ".join([self.episode.task.instruction, *said])))


def shown(episodes: Sequence[Episode], room: int, verdict: bool = True, size: SizeFunction = len) -> tuple[Shown, ...]:
    """Transcripts of attempts. They share the room evenly; what a short one leaves is for the others.

    Args:
        episodes: attempts, at least one step each.
        room: maximum size of all transcripts.
        verdict: False leaves out the outcome, and feedback and reward of the last action, which may name it.
        size: measures a text, in the unit of ``room``.
    """
    whole = [_whole(number, episode, verdict) for number, episode in enumerate(episodes, 1)]
    sizes = [size(each.text) for each in whole]
    parts = shares(sizes, room)
    return tuple(
        each if needed <= part else _within(number, each.episode, part, verdict, size)
        for number, (each, needed, part) in enumerate(zip(whole, sizes, parts, strict=True), 1)
    )


def shares(sizes: Sequence[int], room: int) -> list[int]:
    """Even shares of a room, of which nobody gets more than it needs."""
    left, most = room, max(sizes, default=0)
    for number, needed in enumerate(sorted(sizes)):
        share = left // (len(sizes) - number)
        if needed > share:
            most = share
            break
        left -= needed
    return [min(needed, most) for needed in sizes]


def _whole(number: int, episode: Episode, verdict: bool, most: int | None = None) -> Shown:
    return _of_steps(number, episode, verdict, most, range(1, len(episode.turns) + 1))


def _within(number: int, episode: Episode, room: int, verdict: bool, size: SizeFunction) -> Shown:
    """Transcript of an attempt that is too long: with shortened texts, then without some steps, too."""
    for most in SHORTENED:
        if size((made := _whole(number, episode, verdict, most)).text) <= room:
            return made
    for most in SHORTEST:
        left = room - size(_of_steps(number, episode, verdict, most, ()).text)
        lines = [_line(episode, step, verdict, most) for step in range(1, len(episode.turns) + 1)]
        kept = last_first([size(line) for line in lines], left)
        if len(kept) > 1:
            break
    return _of_steps(number, episode, verdict, most, kept)


def _of_steps(number: int, episode: Episode, verdict: bool, most: int | None, steps: Sequence[int]) -> Shown:
    """Transcript of some steps of an attempt, whose texts have at most so many characters."""
    outcome, told = f" ({'success' if episode.success else 'failure'})" if verdict else "", episode.task.instruction
    head = f"Attempt {number}{outcome}\nTask: {_quoted(told, most)}\n"
    texts = [told, *(text for step in steps for text in _texts(episode, step, verdict))]
    lines = {step: _line(episode, step, verdict, most) for step in steps}
    return Shown(
        episode, head + "".join(_with_gaps(lines)), frozenset(steps), sum(_is_long(each, most) for each in texts)
    )


def _line(episode: Episode, step: int, verdict: bool, most: int | None) -> str:
    named = zip(("observed", "action", "feedback"), _texts(episode, step, verdict), strict=False)
    said = [f"{name} {_quoted(text, most)}" for name, text in named]
    return f"{step}. {', '.join([*said, *_reward(episode, step, verdict)])}\n"


def _reward(episode: Episode, step: int, verdict: bool) -> Iterable[str]:
    """Reward of a step: of the last one, and of all where the environment rewards more than the end."""
    ends = step == len(episode.turns)
    if verdict if ends else any(turn.reward for turn in episode.turns[:-1]):
        yield f"reward {episode.turns[step - 1].reward:g}"


def _texts(episode: Episode, step: int, verdict: bool) -> tuple[str, ...]:
    """Observation and action of a step, and the feedback, unless it may name the outcome that is not shown."""
    turn = episode.turns[step - 1]
    both = (turn.observation, turn.action)
    return (*both, turn.feedback) if verdict or step < len(episode.turns) else both


def _quoted(text: str, most: int | None) -> str:
    """Text as one JSON string: whatever it says, it cannot end the quotation."""
    line = _visible(text)
    return json.dumps(f"{line[:most]} ..." if _is_long(text, most) else line, ensure_ascii=False)


def _is_long(text: str, most: int | None) -> bool:
    return most is not None and len(_visible(text)) > most


@lru_cache(maxsize=4096)
def _visible(text: str) -> str:
    return " ".join(visible(text).split())


def last_first(sizes: Sequence[int], room: int) -> list[int]:
    """Numbers of the steps that fit: the last first, as the outcome was decided there, and the first step."""
    left, kept = room - (sizes[0] if sizes else 0), [1] if sizes else []
    for number in range(len(sizes), 1, -1):
        left -= sizes[number - 1]
        if left < 0:
            break
        kept.append(number)
    return sorted(kept)


def _with_gaps(lines: Mapping[int, str]) -> Iterable[str]:
    before = 0
    for number, line in lines.items():
        if number > before + 1:
            yield f"(steps {before + 1} to {number - 1} are left out)\n"
        yield line
        before = number
