"""Episodes from sessions: an update gets the token ids and log-probs that were drawn, each once.

Every answer of a session is a turn, in the order in which they were drawn, whatever branch it belongs to: each has the
prompt that it was drawn from, so a rewritten history trains as what the policy answered to it, and no token is in two
turns.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import copysign, inf, nextafter
from typing import Any

from coevo.models.engines.requests import completions_of
from coevo.records.episode import Completion, Episode, Turn, total
from coevo.records.task import Task
from coevo.tasks.gateway.session_store import MessageRecord, SessionOutcome, SessionRecord, StepReport, TurnRecord
from coevo.tasks.pending_revision import Position

NO_REPORT = StepReport(turn=0)


@dataclass(frozen=True, slots=True)
class EpisodeReader:
    """Reader of sessions as episodes of a run.

    Attributes:
        env: name of the run's environment.
        tokenizer: of the policy.
        ends: token ids that end an answer.
        versions: iteration of each policy that the update may learn from, by ``RUN@N``.
    """

    env: str
    tokenizer: Any
    ends: Sequence[int]
    versions: Mapping[str, int]

    def is_fresh(self, record: SessionRecord) -> bool:
        """True if all its answers are from these policies."""
        return all((turn.policy or record.policy) in self.versions for turn in record.turns)

    def task(self, record: SessionRecord) -> Task:
        """Task of a session; without data it is that of its group, or its own."""
        given = record.task
        first = next((each.text for turn in record.turns for each in turn.messages if each.role == "user"), "")
        data = given.data or {"session": record.group or given.id or record.session}
        return Task(self.env, given.kind, given.instruction or first, given.scope, "train", data)

    def episode(self, record: SessionRecord, task: Task, replica: int, at: Position) -> Episode:
        """Episode of a session that has an outcome.

        Args:
            record: the session.
            task: task of its group.
            replica: its number within the group.
            at: iteration that learns from it.
        """
        outcome = record.outcome
        assert outcome is not None
        turns = [self._turn(record, number, reward) for number, reward in enumerate(rewards_of(record, outcome))]
        turns[-1] = replace(turns[-1], scores=tuple(sorted(outcome.scores.items())))
        name = Episode.name(at.revision, f"rollout-{at.iteration}", task, replica)
        return Episode(name, task, at.revision, replica, tuple(turns), outcome.success, truncated=False)

    def _turn(self, record: SessionRecord, number: int, reward: float) -> Turn:
        turn, told = record.turns[number], _report(record.outcome, number)
        answered = completions_of(self.tokenizer, self.ends, [list(zip(turn.token_ids, turn.logprobs, strict=True))])[0]
        return Turn(
            observation=_first(told.observation, lambda: turn.messages[-1].text if turn.messages else ""),
            prompt_ids=record.prompt_ids(number),
            completion=Completion(turn.token_ids, turn.logprobs, answered.text, turn.finished),
            action=_first(told.action, lambda: _action(turn.answer)),
            feedback=_first(told.feedback, lambda: _reply_to(record.turns, number)),
            reward=reward,
            valid=told.valid,
            retrieved=_shown(record, turn),
            version=self.versions[turn.policy or record.policy],
            # Of what the agent does between two requests nothing is known.
            seconds=turn.drawing,
            drawing=turn.drawing,
            lesson_scores=_scores(record, turn),
        )


def rewards_of(record: SessionRecord, outcome: SessionOutcome) -> list[float]:
    """Rewards of the answers of a session, of which the last is what the others leave of its outcome.

    Their total differs from the outcome's reward by rounding alone, and is never further from zero, unless a step's
    reward is larger by many orders.
    """
    others = [_report(outcome, number).reward for number in range(len(record.turns) - 1)]
    before = total(others)
    last = outcome.reward - before
    sign = copysign(1.0, outcome.reward)
    while sign * (before + last) > abs(outcome.reward):
        last = nextafter(last, -sign * inf)
    return [*others, last]


def _first(told: str | None, read: Callable[[], str]) -> str:
    return read() if told is None else told


def _report(outcome: SessionOutcome | None, number: int) -> StepReport:
    steps = () if outcome is None else outcome.steps
    return next((each for each in steps if each.turn == number), NO_REPORT)


def _action(answer: MessageRecord) -> str:
    """The calls of an answer, as an environment with tools gets them; its text if there is none."""
    called = [{"name": each.name, "arguments": _parsed(each.arguments)} for each in answer.calls]
    return "\n".join(json.dumps(each, ensure_ascii=False) for each in called) or answer.text.strip()


def _parsed(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _reply_to(turns: Sequence[TurnRecord], number: int) -> str:
    """The message behind an answer in the first branch that continues it; empty if none does."""
    following = next((turn for turn in turns[number + 1 :] if turn.parent == number), None)
    return following.messages[0].text if following is not None and following.messages else ""


def _shown(record: SessionRecord, turn: TurnRecord) -> tuple[str, ...]:
    """Ids of all entries that the prompt of an answer shows, in the order in which they were first shown."""
    return tuple(entry for each in _branch(record, turn) for entry in each.entries)


def _scores(record: SessionRecord, turn: TurnRecord) -> tuple[float | None, ...]:
    """Scores of these entries, None where retrieval gave none."""
    return tuple(score for each in _branch(record, turn) for score in each.scores)


def _branch(record: SessionRecord, turn: TurnRecord) -> list[TurnRecord]:
    """Answers from an opening to this one."""
    found = [turn]
    while (parent := found[-1].parent) is not None:
        found.append(record.turns[parent])
    return found[::-1]
