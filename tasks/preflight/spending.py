"""Calls and tokens that a run takes of its policy's endpoint, before it starts: an estimate, at most at full length."""

from dataclasses import dataclass

from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.bank.writer_model_config import BudgetConfig, PolicyWriterModelConfig
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.tasks.preflight.duration import evaluated, judged
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.writing_time import FRAME, asking
from coevo.tasks.run.run_writer_model import writer_model_config


@dataclass(frozen=True, slots=True)
class PolicySpending:
    """Estimate of what a run takes of its policy's endpoint.

    Attributes:
        policy: settings of the policy, with budget and price.
        calls: number of its calls.
        prompt_tokens: tokens of their prompts.
        answer_tokens: tokens of their answers, if each has full length.
    """

    policy: EndpointPolicyConfig
    calls: int
    prompt_tokens: int
    answer_tokens: int

    @property
    def money(self) -> float | None:
        """Cost by the policy's price, in its currency; None without one."""
        price = self.policy.price
        return None if price is None else price.of(self.prompt_tokens, self.answer_tokens)

    def lines(self) -> list[str]:
        """The estimate in words, then the budget, and what ends the run before its last iteration."""
        cost = "" if self.money is None else f", {self.money:,.2f} by policy.price"
        tokens = f"{self.prompt_tokens:,} prompt and up to {self.answer_tokens:,} answer tokens"
        first = f"about {self.calls:,} calls of {self.policy.model} with {tokens}{cost}"
        return [first, self._bound(self.policy.budget)]

    def _bound(self, budget: BudgetConfig | None) -> str:
        found = None if budget is None else (budget.tokens, budget.cost)
        if found is None or found == (None, None):
            return "no budget bounds them: set policy.budget.tokens, or policy.price and policy.budget.cost"
        tokens, cost = found
        named = [*([f"{tokens:,} tokens"] if tokens else []), *([f"a cost of {cost:,.2f}"] if cost else [])]
        over = tokens is not None and self.prompt_tokens + self.answer_tokens > tokens
        over = over or (cost is not None and self.money is not None and self.money > cost)
        ends = "; the run stops there, maybe before its last iteration" if over else ""
        return f"policy.budget allows {' and '.join(named)}{ends}"


def spending(config: RunConfig, lengths: Lengths, turns: float) -> PolicySpending | None:
    """Estimate of a whole run; None for a policy without an endpoint.

    Args:
        config: the run.
        lengths: tokens of prompts and answers, as estimated without the model's tokenizer.
        turns: turns of an episode.
    """
    policy = config.policy
    if not isinstance(policy, EndpointPolicyConfig):
        return None
    rollouts = config.rollout.tasks * config.rollout.group_size
    each = rollouts + judged(config) + evaluated(config) * config.evaluation.tasks
    # Without an iteration, the first evaluation alone.
    once = len(config.evaluation.panels) + len(config.evaluation.final_panels)
    episodes = config.iterations * each if config.iterations else once * config.evaluation.tasks
    played = round(max(1.0, turns) * episodes)
    questions, prompts, answers = _asked(config, lengths)
    return PolicySpending(
        policy,
        played + questions,
        round(played * (lengths.shortest + lengths.last) / 2) + prompts,
        played * lengths.answer + answers,
    )


def _asked(config: RunConfig, lengths: Lengths) -> tuple[int, int, int]:
    """Questions of the writer that the policy answers itself, with the tokens of their prompts and answers."""
    model, asked = writer_model_config(config), asking(config)
    if not isinstance(model, PolicyWriterModelConfig) or asked is None or config.bank is None:
        return 0, 0, 0
    assert isinstance(config.bank.writer, ModelWriterConfig)
    count = config.iterations // config.bank.every * asked.questions
    size = min(FRAME + asked.attempts * (lengths.longest + lengths.answer), config.bank.writer.question_tokens)
    return count, count * size, count * model.max_new_tokens
