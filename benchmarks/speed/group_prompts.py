"""Inputs that all peers share: a policy of 0.8M weights, and the prompts and answers of a batch.

The batch has the size of the default recipe's and is played by the environment's expert, which reads every other fact
and guesses the rest: so the rollouts of a group part as those of a trained policy do. What it answered stands in the
samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coevo.configs.load.load import load_recipe
from coevo.configs.run_config import RunConfig
from coevo.envs.registry import make
from coevo.memory.retrieval.index import Index
from coevo.models.engines.requests import Request
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import build, load
from coevo.records.draws import extend, key
from coevo.records.episode import Completion, Episode
from coevo.tasks.play.play import Attempt, RolloutWorker, Running
from coevo.tasks.play.retrieve import recall
from coevo.tasks.publish.reporter import Silent
from coevo.tasks.run.assemble import worker_of
from coevo.tasks.run.warmstart import warm_start

RECIPE, PANEL, TASKS, GROUP = "homerules-coevo-rl", "other-facts", 16, 8
PROMPTS = {
    "recipe": (),
    "full": ("bank.retrieval.k=40", "bank.retrieval.scoped=false", "context.experience_tokens=200"),
}
"""Lessons as the recipe shows them, and as many as are found, in the 200 tokens that the method allows them."""
SIZES = ("hidden_size=192", "layers=2", "heads=6", "kv_heads=2", "head_dim=32", "intermediate_size=512")


@dataclass(frozen=True)
class PlayedGroup:
    """A batch.

    Attributes:
        requests: what an engine was asked, turn by turn.
        episodes: groups of ``GROUP``, task by task.
    """

    requests: list[list[Request]]
    episodes: list[Episode]


class Listener(RolloutWorker):
    """Plays as the expert does, and keeps what it would have asked the engine."""

    requests: list[list[Request]]

    def play_turn(self, running: Sequence[Running]) -> None:
        """Play one turn of each."""
        moments = [live.moment(self.context) for live in running]
        prompts = [self.context.prompt(moment) for moment in moments]
        keys = [extend(live.attempt.key, len(live.turns)) for live in running]
        groups = [live.attempt.group for live in running]
        self.requests.append(list(map(Request, prompts, keys, groups)))
        answers = [self.env.expert(moment, draws) for moment, draws in zip(moments, keys, strict=True)]
        steps = self.env.step([live.state for live in running], [answer.action for answer in answers])
        for live, prompt, answer, step in zip(running, prompts, answers, steps, strict=True):
            ids = self.context.target(answer)
            live.advance(prompt, Completion(ids, (0.0,) * len(ids), answer.action, True), answer, step)


def configured(*settings: str) -> RunConfig:
    """The default recipe with the larger policy."""
    return load_recipe(RECIPE, [*(f"policy.{size}" for size in SIZES), *settings])


def untaught(config: RunConfig) -> Policy:
    """Weights that have learned nothing, always the same."""
    return build(config.policy, (*make(config.env).vocabulary, *CONTEXT_WORDS), key("peers"))


def taught(config: RunConfig, cache: Path) -> Policy:
    """The policy that a run starts from: it answers with actions, as long as they are."""
    return load(warm_start(config, make(config.env), cache, Silent()))


def play(config: RunConfig, policy: Policy, tasks: int = TASKS, group: int = GROUP) -> PlayedGroup:
    """A batch of so many tasks in the tokens of a policy; the log-probs in it say nothing."""
    env = make(config.env)
    assert config.bank is not None
    facts = env.panel_bank(PANEL) or []
    seen = recall(Index(facts[::2], config.bank.retrieval), key("peers"))
    worker = worker_of(config, env, policy)
    listener = Listener(env, worker.context, worker.engine, config.rollout.max_turns)
    listener.requests = []
    attempts = [
        Attempt(task, n, seen.of_task(task), "peers", 0, key("peers", task.id, n), partial(seen.of_step, task))
        for task in env.panel(PANEL, tasks).tasks
        for n in range(group)
    ]
    return PlayedGroup(listener.requests, listener.play(attempts))


def parameters(policy: Policy) -> int:
    """Weights of the model, tied ones once."""
    return sum(parameter.numel() for parameter in policy.model.parameters())
