"""Expense of a run's writer model, and its budget."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, takewhile

from coevo.configs.bank.writer_model_config import BudgetConfig, WriterModelConfig
from coevo.records.writing import Question, Reply, estimated


@dataclass(frozen=True, slots=True)
class QuestionExpense:
    """Expense of a run's questions.

    Attributes:
        questions: number of replies, refusals among them.
        prompt_tokens: tokens of the prompts.
        answer_tokens: tokens of the answers.
    """

    questions: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0

    def plus(self, replies: Iterable[Reply]) -> "QuestionExpense":
        """Expense with these answers."""
        found = list(replies)
        return QuestionExpense(
            self.questions + len(found),
            self.prompt_tokens + sum(reply.prompt_tokens for reply in found),
            self.answer_tokens + sum(reply.answer_tokens for reply in found),
        )


def exhausted(spent: QuestionExpense, writer_model: WriterModelConfig) -> str:
    """Reason why no more questions are asked; empty while the budget lasts."""
    budget = writer_model.budget
    if budget is None:
        return ""
    if budget.tokens is not None and _tokens(spent) >= budget.tokens:
        return f"the budget of {budget.tokens} tokens is spent: raise bank.writer.model.budget.tokens"
    if budget.cost is not None and money(spent, writer_model) >= budget.cost:
        return f"the budget of {budget.cost:g} is spent: raise bank.writer.model.budget.cost"
    return ""


def affordable(questions: Sequence[Question], spent: QuestionExpense, writer_model: WriterModelConfig) -> int:
    """Number of questions from the first on, at least 1, that the budget pays for whatever the length of their answers.

    Questions that wait for answers side by side cannot be taken back once the first answers have spent the budget.
    """
    if writer_model.budget is None:
        return len(questions)
    longest = (Reply("", False, estimated(each.system + each.user), writer_model.max_new_tokens) for each in questions)
    sums = accumulate(longest, lambda before, reply: before.plus([reply]), initial=spent)
    paid = takewhile(partial(_pays_for, writer_model.budget, writer_model), sums)
    return max(1, len(list(paid)) - 1)


def _pays_for(budget: BudgetConfig, writer_model: WriterModelConfig, spent: QuestionExpense) -> bool:
    return (budget.tokens is None or _tokens(spent) <= budget.tokens) and (
        budget.cost is None or money(spent, writer_model) <= budget.cost
    )


def _tokens(spent: QuestionExpense) -> int:
    return spent.prompt_tokens + spent.answer_tokens


def money(spent: QuestionExpense, writer_model: WriterModelConfig) -> float:
    """Cost of an expense in the currency of the prices, 0 without prices."""
    price = writer_model.price
    return 0.0 if price is None else price.of(spent.prompt_tokens, spent.answer_tokens)
