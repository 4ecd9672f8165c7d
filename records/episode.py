"""Results of a rollout: completions, turns, episodes."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

from coevo.records.task import Task

UNSTAMPED = -1
"""Version of a policy that was not recorded."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One completion that an engine generated for one prompt.

    Attributes:
        token_ids: generated ids, including the end token if it was drawn.
        logprobs: the engine's own log-probability of each token in the distribution that it was drawn from.
        text: decoded text without padding, unknown and end tokens.
        finished: True if the end token was drawn within the length limit.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finished: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt, one completion, one action, and the environment's response.

    Attributes:
        observation: the agent's observation.
        prompt_ids: token ids of the whole prompt.
        completion: the policy's completion.
        action: action parsed from the completion's text; empty if none could be parsed.
        feedback: the environment's feedback on the action.
        reward: extrinsic reward of this turn.
        valid: True if the environment understood the action.
        retrieved: ids of the entries in the prompt, best first.
        cluster_id: observation cluster, -1 if clusters are not computed.
        version: training iterations of the policy that generated it, if a run plays ahead; else ``UNSTAMPED``.
        fault: reason why the completion holds no usable action, a ``Fault``; empty if it holds one.
        scores: values that the reward is made of, by name; empty if the environment names none.
        seconds: from the prompt to the environment's answer, which turns of one batch share; None if not measured.
            It differs between repeated runs, so that it is no part of the record.
        drawing: seconds of them in which the policy drew its answer; None if not measured.
        lesson_scores: score that retrieval gave each entry of ``retrieved``, None where it gave none; empty if they are
            not known, as of a stored turn.
    """

    observation: str
    prompt_ids: tuple[int, ...]
    completion: Completion
    action: str
    feedback: str
    reward: float
    valid: bool
    retrieved: tuple[str, ...] = ()
    cluster_id: int = -1
    version: int = UNSTAMPED
    fault: str = ""
    scores: tuple[tuple[str, float], ...] = ()
    seconds: float | None = field(default=None, compare=False)
    drawing: float | None = field(default=None, compare=False)
    lesson_scores: tuple[float | None, ...] = field(default=(), compare=False)

    @property
    def usable(self) -> bool:
        """True if the completion holds an action, understood by the environment or not."""
        return bool(self.action) and not self.fault


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task, or the part of an attempt that one update learns from.

    Attributes:
        id: ``<revision>/<stage>/<task id>/<replica>``, unique in a run.
        task: the attempted task.
        revision: revision of the policy and bank that played.
        replica: index within the task's group, 0 <= replica < group size.
        turns: in order.
        success: the environment's own criterion.
        truncated: True if the turn limit ended it rather than the environment.
        progress: ground-truth fraction of the task completed, if the environment knows it.
        shaping: reward added to the extrinsic one (penalties are negative).
        start: number of turns of the attempt before these; 0 for a whole attempt.
        following: prompt of the turn after these if the attempt continues; empty if it is over.
        cut: reason if the agent, not the environment, could not continue; such an episode counts like any other.
        lost: reason if the environment failed, ``kind: detail``; a lost episode is excluded from metrics and training.
        lesson_use: part of the lessons in a failure, a ``LessonUse``; empty where it is not known here. It is no part
            of the record.
    """

    id: str
    task: Task
    revision: int
    replica: int
    turns: tuple[Turn, ...]
    success: bool
    truncated: bool
    progress: float | None = None
    shaping: float = 0.0
    start: int = 0
    following: tuple[int, ...] = ()
    cut: str = ""
    lost: str = ""
    lesson_use: str = field(default="", compare=False)

    @property
    def teaches(self) -> bool:
        """True if policy and bank can learn from it: the environment played it, for at least one turn."""
        return bool(self.turns) and not self.lost

    @property
    def reward(self) -> float:
        """Undiscounted extrinsic return of the episode."""
        return total(turn.reward for turn in self.turns)

    @property
    def shaped(self) -> float:
        """Return that advantages are computed from."""
        return self.reward + self.shaping

    @staticmethod
    def name(revision: int, stage: str, task: Task, replica: int) -> str:
        """Id of the attempt at a task in a stage of a revision."""
        return f"{revision}/{stage}/{task.id}/{replica}"

    def with_shaping(self, shaping: float) -> "Episode":
        """Copy the episode with another shaping reward."""
        return replace(self, shaping=shaping)

    def after(self, earlier: "Episode") -> "Episode":
        """Join this part to the earlier ones."""
        return replace(self, turns=earlier.turns + self.turns, shaping=earlier.shaping + self.shaping, start=0)


def total(rewards: Iterable[float]) -> float:
    """Sum of rewards, added one after the other: ``sum`` rounds in another way from Python 3.12 on."""
    return reduce(add, rewards, 0.0)


def stored_bytes(episode: Episode) -> int:
    """Bytes of an episode's texts and tokens, as a table holds them before compression."""
    texts = (text for turn in episode.turns for text in (turn.observation, turn.completion.text, turn.feedback))
    numbers = (len(turn.prompt_ids) + 2 * len(turn.completion.token_ids) for turn in episode.turns)
    return sum(len(text.encode(errors="replace")) for text in texts) + 4 * sum(numbers)


def played(episodes: Iterable[Episode]) -> list[Episode]:
    """Episodes that the environment played to their end; lost ones are left out."""
    return [episode for episode in episodes if not episode.lost]
