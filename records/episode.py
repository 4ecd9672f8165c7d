"""What a rollout leaves behind: completions, turns, episodes."""

from dataclasses import dataclass, replace

from records.task import Task

UNSTAMPED = -1
"""The version of a policy that nobody has asked about."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What an engine generated for one prompt.

    Attributes:
        token_ids: generated ids, the end token included where it was drawn.
        logprobs: the engine's own log-probability of each in the distribution that it was drawn from.
        text: decoded, special tokens left out.
        finished: whether the end token was drawn within the length limit.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    text: str
    finished: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One prompt, one completion, one action, and what came of it.

    Attributes:
        observation: what the agent saw.
        prompt_ids: token ids of the whole prompt.
        completion: what the policy generated.
        action: the action read from the completion's text; empty where none could be read.
        feedback: what the environment answered.
        reward: extrinsic reward of this turn.
        valid: whether the environment understood the action.
        retrieved: ids of the entries in the prompt, best first.
        cluster_id: observation cluster, -1 where clusters are not computed.
        version: iterations behind the policy that wrote it, where a run plays ahead; else ``UNSTAMPED``.
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


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at a task, or the part of one that an update is made from.

    Attributes:
        id: ``<revision>/<stage>/<task id>/<replica>``, unique in a run.
        task: what was attempted.
        revision: revision of the policy and bank that played.
        replica: index within the task's group, 0 <= replica < group size.
        turns: in order.
        success: the environment's own criterion.
        truncated: ended by the turn limit rather than by the environment.
        progress: ground-truth fraction of the task completed, where the environment knows it.
        shaping: reward added to the extrinsic one (penalties are negative).
        start: turns of the attempt before the first of these; 0 unless it is a part.
        following: prompt of the turn after the last of these, where the attempt goes on; empty where it is over.
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

    @property
    def reward(self) -> float:
        """Undiscounted extrinsic return of the episode."""
        return sum(turn.reward for turn in self.turns)

    @property
    def shaped(self) -> float:
        """The return that advantages are computed from."""
        return self.reward + self.shaping

    @staticmethod
    def name(revision: int, stage: str, task: Task, replica: int) -> str:
        """The id of the attempt at a task that a stage of a revision makes."""
        return f"{revision}/{stage}/{task.id}/{replica}"

    def with_shaping(self, shaping: float) -> "Episode":
        """The same episode with another shaping reward."""
        return replace(self, shaping=shaping)

    def after(self, earlier: "Episode") -> "Episode":
        """This part and all before it as one."""
        return replace(self, turns=earlier.turns + self.turns, shaping=earlier.shaping + self.shaping, start=0)
