"""Attempts at tasks: what to play, and an attempt in progress."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from coevo.envs.base import NO_GUIDE, Guide, Step
from coevo.envs.failures import EpisodeFailure, one_line
from coevo.models.policy.context import Context
from coevo.records.demonstration import Answer, Moment, Note, PastTurn
from coevo.records.draws import Key
from coevo.records.entry import Entry
from coevo.records.episode import UNSTAMPED, Completion, Episode, Turn
from coevo.records.task import Task

Recall = Callable[[str], tuple[Entry, ...]]
"""Function from an observation to the experience for the prompt of its turn, best first."""


def nothing(observation: str) -> tuple[Entry, ...]:
    """No experience for single turns."""
    return ()


OVERLONG = "overlong"
"""Kind of the reason that ends an episode whose next prompt is too long."""


def overlong(prompt: Sequence[int], most: int) -> str:
    """Reason why a prompt leaves no room for an answer; empty if it has at most ``most`` tokens."""
    if len(prompt) <= most:
        return ""
    return f"{OVERLONG}: a prompt of {len(prompt)} tokens, and the policy attends to {most} before its answer"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One episode to play.

    Attributes:
        task: task to attempt.
        replica: index within the task's group.
        entries: experience in all its prompts, best first.
        stage: purpose of the episode; part of its id.
        revision: revision of the policy.
        key: root of its draws.
        recall: additional experience for the prompt of a single turn.
        version: version of the policy, recorded in its turns.
    """

    task: Task
    replica: int
    entries: tuple[Entry, ...]
    stage: str
    revision: int
    key: Key
    recall: Recall = nothing
    version: int = UNSTAMPED

    @property
    def id(self) -> str:
        """Identity of the episode."""
        return Episode.name(self.revision, self.stage, self.task, self.replica)

    @property
    def group(self) -> str:
        """Name of the attempt's group, which shares task and lasting experience, hence the start of its prompts."""
        return group_of(self.task, self.entries)


def group_of(task: Task, entries: Sequence[Entry]) -> str:
    """Name of the group of prompts with this task and these entries."""
    return f"{task.id}/{','.join(entry.id for entry in entries)}"


@dataclass
class Running:
    """An attempt in progress.

    Attributes:
        attempt: the attempt.
        state: state of the environment.
        observation: current observation.
        turns: turns played.
        last: result of the last action.
        shown: experience in the current prompt.
        returned: number of turns in the parts returned so far.
        guide: how to act in the environment.
        cut: reason if the policy cannot continue; empty otherwise.
        lost: reason if the environment has failed; empty otherwise.
        over: True if an agent that is served reports that its unusable answers have ended the episode.
    """

    attempt: Attempt
    state: object
    observation: str
    turns: list[Turn] = field(default_factory=list)
    last: Step[object] | None = None
    shown: tuple[Entry, ...] = ()
    returned: int = 0
    guide: Guide = NO_GUIDE
    cut: str = ""
    lost: str = ""
    over: bool = False

    @classmethod
    def begun(
        cls, attempt: Attempt, start: tuple[object, str] | EpisodeFailure, guide: Guide | EpisodeFailure
    ) -> "Running":
        """The attempt after the environment's start and guide, which may have failed."""
        failed = next((str(each) for each in (start, guide) if isinstance(each, EpisodeFailure)), "")
        state, observation = (None, "") if isinstance(start, EpisodeFailure) else start
        return cls(
            attempt, state, observation, guide=NO_GUIDE if isinstance(guide, EpisodeFailure) else guide, lost=failed
        )

    @property
    def stopped(self) -> bool:
        """True if the attempt cannot be continued, or the environment has ended it."""
        return bool(self.cut or self.lost or self.over) or (self.last is not None and self.last.done)

    def moment(self, context: Context) -> Moment:
        """The next prompt's content; lasting experience comes first, so that it stays in the shared start."""
        task, lasting = self.attempt.task, self.attempt.entries
        self.shown = context.shown(
            tuple(dict.fromkeys((*lasting, *self.attempt.recall(self.observation)))), task.instruction
        )
        lessons = tuple(map(Note.of, context.unread(self.shown, self.turns)))
        history = tuple(PastTurn(turn.observation, turn.action, turn.feedback) for turn in self.turns)
        guide, played, seen = self.guide, tuple(self.turns), self.observation
        return Moment(task.instruction, lessons, history, seen, guide.text, guide.tools, played, guide.answer)

    def advance(
        self, prompt: tuple[int, ...], completion: Completion, answer: Answer, step: Step[object] | EpisodeFailure
    ) -> None:
        """Append a turn: its prompt, the policy's answer, and the environment's step; a failed step adds no turn."""
        if isinstance(step, EpisodeFailure):
            self.lost = f"{step} (turn {len(self.turns)}, action {one_line(answer.action)!r:.80})"
            return
        turn = Turn(
            observation=self.observation,
            prompt_ids=prompt,
            completion=completion,
            action=answer.action,
            feedback=step.feedback,
            reward=step.reward,
            valid=step.valid and not answer.fault,
            retrieved=tuple(entry.id for entry in self.shown),
            version=self.attempt.version,
            fault=answer.fault,
            scores=step.scores,
        )
        self.turns.append(turn)
        self.state, self.observation, self.last = step.state, step.observation, step

    def part(self, following: tuple[int, ...] = ()) -> Episode:
        """The turns since the last part; ``following`` is the prompt of the next part if the episode continues."""
        attempt, last, start = self.attempt, self.last, self.returned
        ended = last is not None and last.done
        self.returned = len(self.turns)
        return Episode(
            id=attempt.id,
            task=attempt.task,
            revision=attempt.revision,
            replica=attempt.replica,
            turns=tuple(self.turns[start:]),
            success=last is not None and last.success,
            truncated=not (following or self.lost) and (not ended or (last is not None and last.truncated)),
            progress=None if last is None else last.progress,
            start=start,
            following=following,
            cut=self.cut,
            lost=self.lost,
        )
