"""Outcomes that an environment tells: it plays the task of a session again, with what the session's agent did."""

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

from pydantic import ValidationError

from coevo.envs.base import NO_GUIDE, Environment
from coevo.envs.failures import EpisodeFailure, attempted
from coevo.records.demonstration import Answer, Moment
from coevo.records.episode import total
from coevo.records.task import Task
from coevo.tasks.gateway.session_store import MAX_TEXT_CHARS, SessionOutcome, SessionTask, StepReport
from coevo.tasks.play.turns import Acted, turn_by_turn
from coevo.utilities.errors import CoevoError


class OutcomeEnvironment:
    """Environment that tells the outcomes of a gateway's sessions, one after the other; any thread may ask.

    Args:
        build: builds it, once it is first asked: a gateway whose clients report outcomes themselves needs none.
    """

    def __init__(self, build: Callable[[], Environment[Any]]) -> None:
        self._build, self._alone = build, Lock()
        self._env: Environment[Any] | None = None

    def outcome(self, task: SessionTask, actions: Sequence[str], answers: int) -> SessionOutcome:
        """Outcome of a session.

        Args:
            task: its task, with the data of a task of the environment.
            actions: what its agent did, in order.
            answers: number of its answers; if there is an action for each, the outcome has its steps.

        Raises:
            CoevoError: the environment cannot be built, cannot play the task, or was over before the last action.
        """
        if not task.data:
            raise CoevoError(
                "actions: the session's task has no data: open it with those of a task, or report a reward"
            )
        with self._alone:
            self._env = self._env or self._build()
            acted = _played(self._env, task, actions)
        steps = [_report(number, each) for number, each in enumerate(acted)]
        last = acted[-1].step
        try:
            return SessionOutcome(
                reward=total([each.step.reward for each in acted]),
                success=last.success,
                scores={name: value for each in acted for name, value in each.step.scores},
                steps=tuple(steps) if len(steps) == answers else (),
                actions=tuple(actions),
            )
        except ValidationError as error:
            raise CoevoError(
                f"actions: the environment's outcome is out of bounds: {error.errors()[0]['msg']}"
            ) from None

    def close(self) -> None:
        """End what the environment has started."""
        with self._alone:
            if self._env is not None:
                self._env.close()


def _played(env: Environment[Any], session: SessionTask, actions: Sequence[str]) -> list[Acted]:
    """Turns of the actions, at least one. Raises ``CoevoError``."""
    task, left = Task(env.name, session.kind, session.instruction, session.scope, "train", session.data), iter(actions)

    def act(_: Any, moment: Moment) -> Answer | None:
        return Answer("", next(left))

    acted = attempted(lambda: list(turn_by_turn(env, task, NO_GUIDE, act, len(actions))))
    if isinstance(acted, EpisodeFailure):
        raise CoevoError(
            f"actions: {env.name} cannot play the session's task ({acted}): check its data, or report a reward"
        )
    if len(acted) < len(actions):
        raise CoevoError(f"actions: the episode was over after {len(acted)} of {len(actions)}: leave the others out")
    return acted


def _report(number: int, acted: Acted) -> StepReport:
    """Report on an answer; a text that is too long for one is read from the messages instead."""
    texts = {"observation": acted.moment.observation, "action": acted.answer.action, "feedback": acted.step.feedback}
    short = {name: text for name, text in texts.items() if len(text) <= MAX_TEXT_CHARS}
    return StepReport(turn=number, reward=acted.step.reward, valid=acted.step.valid, **short)
