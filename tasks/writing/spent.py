"""Expense of a run's author, and its budget."""

from collections.abc import Iterable
from dataclasses import dataclass

from coevo.configs.bank.author import AuthorConfig
from coevo.records.writing import Reply

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """Expense of a run's questions.

    Attributes:
        questions: number of replies, refusals among them.
        prompt_tokens: tokens of the prompts.
        answer_tokens: tokens of the answers.
    """

    questions: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def plus(self, replies: Iterable[Reply]) -> "Spent":
        """Expense with these answers."""
        found = list(replies)
        return Spent(
            self.questions + len(found),
            self.prompt_tokens + sum(reply.prompt_tokens for reply in found),
            self.answer_tokens + sum(reply.answer_tokens for reply in found),
        )


def exhausted(spent: Spent, author: AuthorConfig) -> str:
    """Reason why no more questions are asked; empty while the budget lasts."""
    budget, price = author.budget, author.price
    if budget is None:
        return ""
    tokens = spent.prompt_tokens + spent.answer_tokens
    if budget.tokens is not None and tokens >= budget.tokens:
        return f"the budget of {budget.tokens} tokens is spent: raise bank.writer.author.budget.tokens"
    if budget.cost is None or price is None:
        return ""
    cost = (spent.prompt_tokens * price.prompt + spent.answer_tokens * price.answer) / MILLION
    if cost >= budget.cost:
        return f"the budget of {budget.cost:g} is spent: raise bank.writer.author.budget.cost"
    return ""
