"""Outcomes that an environment tells: it plays the task of a session again, with what the session's agent did."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from coevo.envs.base import NO_GUIDE, Environment
from coevo.envs.failures import EpisodeFailure, attempted
from coevo.records.demonstration import Answer, Moment
from coevo.records.episode import total
from coevo.records.task import Task
from coevo.tasks.gateway.session_store import MAX_TEXT_CHARS, SessionOutcome, SessionTask, StepReport
from coevo.tasks.play.episode_metrics import mean_scores
from coevo.tasks.play.turns import Acted, turn_by_turn
from coevo.utilities.errors import CoevoError


class OutcomeEnvironment:
    """Environment that tells the outcomes of a gateway's sessions, one after the other, in a thread of its own.

    Args:
        build: builds it, once it is first asked: a gateway whose clients report outcomes themselves needs none.
        max_turns: most actions of an outcome, ``rollout.max_turns``: an environment may have no limit of its own.
    """

    def __init__(self, build: Callable[[], Environment[Any]], max_turns: int) -> None:
        self._build, self._max_turns = build, max_turns
        self._env: Environment[Any] | None = None
        self._thread = ThreadPoolExecutor(1, "outcomes")

    def outcome(self, task: SessionTask, actions: Sequence[str], answers: int) -> Future[SessionOutcome]:
        """Outcome of a session; the future has a ``CoevoError`` if the environment cannot tell it.

        That is, if it cannot be built, cannot play the task, or was over before the last action.

        Args:
            task: its task, with the data of a task of the environment.
            actions: what its agent did, in order.
            answers: number of its answers; if there is an action for each, the outcome has its steps.

        Raises:
            CoevoError: the task has no data, or there are too many actions.
        """
        if not task.data:
            raise CoevoError(
                "actions: the session's task has no data: open it with those of a task, or report a reward"
            )
        if len(actions) > self._max_turns:
            raise CoevoError(
                f"actions: {len(actions)} are more than rollout.max_turns={self._max_turns} allows: leave the others "
                "out, or report a reward"
            )
        return self._thread.submit(self._told, task, tuple(actions), answers)

    def close(self) -> None:
        """Cancel outcomes that wait, and end what the environment has started."""
        self._thread.shutdown(cancel_futures=True)
        if self._env is not None:
            self._env.close()

    def _told(self, task: SessionTask, actions: tuple[str, ...], answers: int) -> SessionOutcome:
        self._env = self._env or self._build()
        steps = _played(self._env, task, actions, len(actions) == answers)
        try:
            return SessionOutcome(
                reward=total(each.reward for each in steps),
                success=steps[-1].success,
                scores=mean_scores(each.scores for each in steps),
                steps=tuple(each.report(number) for number, each in enumerate(steps) if each.texts is not None),
                actions=actions,
            )
        except (ValidationError, OverflowError) as error:
            reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else error
            raise CoevoError(f"actions: the environment's outcome is out of bounds: {reason}") from None


@dataclass(frozen=True, slots=True)
class _PlayedStep:
    """The part of a turn that an outcome has; its moment, with the whole history, and its state may be freed.

    Attributes:
        texts: those of its report; None if the outcome has no reports.
    """

    reward: float
    success: bool
    valid: bool
    scores: tuple[tuple[str, float], ...]
    texts: Mapping[str, str] | None

    @classmethod
    def of(cls, acted: Acted, has_report: bool) -> "_PlayedStep":
        step = acted.step
        return cls(step.reward, step.success, step.valid, step.scores, _texts(acted) if has_report else None)

    def report(self, number: int) -> StepReport:
        return StepReport(turn=number, reward=self.reward, valid=self.valid, **(self.texts or {}))


def _played(
    env: Environment[Any], session: SessionTask, actions: Sequence[str], has_reports: bool
) -> list[_PlayedStep]:
    """Steps of the actions, at least one. Raises ``CoevoError``."""
    task, left = Task(env.name, session.kind, session.instruction, session.scope, "train", session.data), iter(actions)

    def act(_: Any, moment: Moment) -> Answer | None:
        return Answer("", next(left))

    turns = turn_by_turn(env, task, NO_GUIDE, act, len(actions))
    steps = attempted(lambda: [_PlayedStep.of(acted, has_reports) for acted in turns])
    if isinstance(steps, EpisodeFailure):
        raise CoevoError(
            f"actions: {env.name} cannot play the session's task ({steps}): check its data, or report a reward"
        )
    if len(steps) < len(actions):
        raise CoevoError(f"actions: the episode was over after {len(steps)} of {len(actions)}: leave the others out")
    return steps


def _texts(acted: Acted) -> dict[str, str]:
    """Texts of a report; one that is too long is read from the messages instead."""
    texts = {"observation": acted.moment.observation, "action": acted.answer.action, "feedback": acted.step.feedback}
    return {name: text for name, text in texts.items() if len(text) <= MAX_TEXT_CHARS}
