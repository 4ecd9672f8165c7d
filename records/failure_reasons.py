"""Reasons why an episode failed: a closed list, and for each what its lessons had to do with it."""

from enum import StrEnum

from coevo.records.answer_faults import Fault
from coevo.records.episode import Episode, Turn


class FailureReason(StrEnum):
    """Reason why an episode did not solve its task."""

    NO_ACTION = "no usable action"
    """Answers held no action."""
    INVALID = "invalid action"
    """The environment did not understand the actions."""
    TURNS = "out of turns"
    """The limit of turns came first."""
    TOKENS = "out of tokens"
    """A prompt did not fit any more, or answers reached their limit."""
    ENVIRONMENT = "environment error"
    """The environment failed, so that the episode counts nowhere."""
    WRONG_END = "wrong end"
    """The environment ended the episode after an action that it understood."""


class LessonUse(StrEnum):
    """Part of the lessons in a failed episode; ``LESSON_USES`` says what each means."""

    NO_BANK = "no bank"
    NONE_FITS = "no fitting lesson"
    NOT_RETRIEVED = "not retrieved"
    LEFT_OUT = "left out"
    NOT_FOLLOWED = "not followed"
    UNKNOWN = "unknown"


LESSON_USES: dict[str, str] = {
    LessonUse.NO_BANK: "no bank was searched: the policy had none, or an empty one",
    LessonUse.NONE_FITS: "the bank lacks at least one lesson that the task needs; others may have been read",
    LessonUse.NOT_RETRIEVED: "the bank has all lessons that the task needs, and not all were found",
    LessonUse.LEFT_OUT: "all lessons that the task needs were found, and not all stood in prompts",
    LessonUse.NOT_FOLLOWED: "all lessons that the task needs stood in prompts",
    LessonUse.UNKNOWN: "the environment does not say what the task needs, or a model words the lessons",
}
"""Meaning of each, in words that stand below tables."""
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
