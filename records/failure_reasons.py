"""Reasons why an episode failed: a closed list, and for each what its lessons had to do with it."""

from enum import StrEnum
from typing import Self

from coevo.records.answer_faults import Fault
from coevo.records.episode import Episode, Turn


class ExplainedLabel(StrEnum):
    """A label of a closed list, with its meaning for readers.

    Attributes:
        meaning: the label in other words, as pages show it.
    """

    meaning: str

    def __new__(cls, text: str, meaning: str) -> Self:
        """Create a member whose value is ``text``."""
        made = str.__new__(cls, text)
        made._value_, made.meaning = text, meaning
        return made


class FailureReason(ExplainedLabel):
    """Reason why an episode did not solve its task."""

    NO_ACTION = "no usable action", "answers held no action"
    INVALID = "invalid action", "the environment did not understand the actions"
    TURNS = "out of turns", "the limit of turns came first"
    TOKENS = "out of tokens", "a prompt did not fit any more, or answers reached their limit"
    ENVIRONMENT = "environment error", "the environment failed; the episode counts nowhere"
    WRONG_END = "wrong end", "the environment ended the episode after an action that it understood"


class LessonUse(ExplainedLabel):
    """Part of the lessons in a failed episode, judged by all that its task needs and not by one lesson."""

    NO_BANK = "no bank", "no bank was searched: the policy had none, or an empty one"
    NONE_FITS = "no fitting lesson", "the bank lacks at least one note that the task needs; others may have been read"
    NOT_RETRIEVED = "not retrieved", "the bank has all that the task needs, and no search found all of it"
    LEFT_OUT = "left out", "searches found all that the task needs, and a part stood in no prompt"
    NOT_FOLLOWED = "not followed", "all that the task needs stood in prompts, and the episode failed all the same"
    UNKNOWN = "unknown", "it cannot be told what the task needs, or lessons are in words of a model"


MEANINGS = {str(label): label.meaning for label in (*FailureReason, *LessonUse)}
"""Meaning of each label."""
_OUT_OF_TOKENS = (Fault.CUT_OFF, Fault.CUT_OFF_THINKING)


def failure_reason(episode: Episode) -> FailureReason | None:
    """Reason of a failed episode; None for a success, and for a part of an attempt that continues.

    Where the environment ended the episode, its last turn decides. Where a limit ended it, the turns without a valid
    action decide if they are at least half of all; else it is the limit.
    """
    if episode.lost:
        return FailureReason.ENVIRONMENT
    if episode.success or episode.following:
        return None
    if episode.cut:
        return FailureReason.TOKENS
    if not episode.truncated and episode.turns:
        return _reason_of(episode.turns[-1]) or FailureReason.WRONG_END
    bad = [reason for turn in episode.turns if (reason := _reason_of(turn)) is not None]
    if 2 * len(bad) < len(episode.turns) or not bad:
        return FailureReason.TURNS
    return max(FailureReason, key=bad.count)


def _reason_of(turn: Turn) -> FailureReason | None:
    """Reason why a turn had no valid action; None if it had one."""
    if turn.fault in _OUT_OF_TOKENS:
        return FailureReason.TOKENS
    if turn.fault and turn.fault != Fault.REFUSED:
        return FailureReason.NO_ACTION
    return None if turn.valid and not turn.fault else FailureReason.INVALID
