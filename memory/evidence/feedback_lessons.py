"""Lessons of an episode: feedback with information about the task that the next observation does not show."""

from dataclasses import dataclass

from coevo.memory.text import clean, content_words, words
from coevo.records.entry import Entry, entry_id
from coevo.records.episode import Episode


@dataclass(frozen=True, slots=True)
class TurnLesson:
    """The lesson of one turn.

    Attributes:
        turn: index of the turn in its episode.
        entry: the lesson as an entry with that episode as its only source.
    """

    turn: int
    entry: Entry


def lessons(episode: Episode, revision: int) -> list[TurnLesson]:
    """The lessons of an episode in order of turns, as entries of ``revision``.

    Feedback is a lesson if it mentions a word of the action and a content word of the instruction, and has a word that
    the next observation lacks: ``hold mug`` before ``at safe hold mug`` only acknowledges. No observation follows the
    last turn, so its feedback is compared with the words of the action and of all observations.
    """
    found = []
    for index, turn in enumerate(episode.turns):
        feedback = words(turn.feedback)
        concerns = [word for word in content_words(episode.task.instruction) if word in feedback]
        if concerns and set(feedback) & set(words(turn.action)) and set(feedback) - _said_after(episode, index):
            found.append(TurnLesson(index, _entry(episode, index, concerns, revision)))
    return found


def _said_after(episode: Episode, index: int) -> set[str]:
    if index + 1 < len(episode.turns):
        return set(words(episode.turns[index + 1].observation))
    seen = " ".join(turn.observation for turn in episode.turns)
    return set(words(f"{seen} {episode.turns[index].action}"))


def _entry(episode: Episode, index: int, concerns: list[str], revision: int) -> Entry:
    task, turn = episode.task, episode.turns[index]
    named = words(task.scope)
    strategy = clean(f"{task.scope} {turn.feedback}")
    return Entry(
        id=entry_id(task.scope, strategy),
        strategy=strategy,
        condition=clean(" ".join(concerns)),
        example=clean(turn.action),
        keywords=clean(" ".join([*named, *(word for word in concerns if word not in named)])),
        scope=task.scope,
        split=task.split,
        sources=(episode.id,),
        created=revision,
        edited=revision,
    )
