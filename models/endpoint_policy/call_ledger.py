"""Ledger of the calls to a policy's endpoint: what was answered, so that nothing is asked twice, and what was paid.

    calls-000001.jsonl   expense of earlier files, then one line per event

A call that may cost something is noted before it is sent if a budget has to hold, its answer when it arrives. A call
without an answer in the file, as after a kill, counts at its full length: the endpoint may charge for it. Each
revision begins a file; those with its answers stay until it is committed, and what is older is only a sum.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coevo.configs.bank.writer_model_config import BudgetConfig, PriceConfig, SpendingConfig
from coevo.utilities.errors import CoevoError
from coevo.utilities.line_file import append_line, drop_torn_line

NAME, PATTERN = "calls-{:06}.jsonl", "calls-*.jsonl"
Event = Literal["before", "asked", "answered", "paid"]
"""Content of a line: expense of earlier files, a call before it is sent, its answer, or its cost without one."""


@dataclass(frozen=True, slots=True)
class CallExpense:
    """Tokens of calls.

    Attributes:
        prompt_tokens: tokens of the prompts.
        answer_tokens: tokens of the answers.
    """

    prompt_tokens: int = 0
    answer_tokens: int = 0

    def __add__(self, other: "CallExpense") -> "CallExpense":
        return CallExpense(self.prompt_tokens + other.prompt_tokens, self.answer_tokens + other.answer_tokens)

    def __sub__(self, other: "CallExpense") -> "CallExpense":
        return CallExpense(self.prompt_tokens - other.prompt_tokens, self.answer_tokens - other.answer_tokens)

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers."""
        return self.prompt_tokens + self.answer_tokens

    def money(self, price: PriceConfig | None) -> float:
        """Cost by a price, in its currency; 0 without one."""
        return 0.0 if price is None else price.of(self.prompt_tokens, self.answer_tokens)

    def within(self, budget: BudgetConfig, price: PriceConfig | None) -> bool:
        """Return True if a budget pays for it."""
        enough = budget.tokens is None or self.tokens <= budget.tokens
        return enough and (budget.cost is None or self.money(price) <= budget.cost)


class _Line(BaseModel):
    """Line of a file; tokens are those that the event adds to the expense, those of ``asked`` until it is settled."""

    model_config = ConfigDict(extra="forbid", strict=True)
    event: Event
    call: str = ""
    prompt_tokens: int = Field(default=0, ge=0)
    answer_tokens: int = Field(default=0, ge=0)
    text: str = ""
    finished: bool = True

    @property
    def expense(self) -> CallExpense:
        """Tokens of the event."""
        return CallExpense(self.prompt_tokens, self.answer_tokens)


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """Answer to a call.

    Attributes:
        text: the answer without its thinking.
        finished: True if it ended by itself rather than by its length limit.
    """

    text: str
    finished: bool


NO_ANSWER = KeptAnswer("", True)


@dataclass(frozen=True, slots=True)
class CallRemedies:
    """How to go on after an error, for messages.

    Attributes:
        higher: with a higher budget.
        kept: with what was answered.
    """

    higher: str
    kept: str


OF_A_RUN = CallRemedies("continue in a branch with a higher one", "what was answered is kept for `coevo resume`")
OF_RESULTS = CallRemedies("set a higher one", "what was answered is kept: continue with --resume")
OF_NOTHING = CallRemedies("set a higher one", "nothing is kept: name a file with --output to continue")


class CallLedger:
    """Answers and expense of the calls of a run.

    Args:
        directory: of the files, made with the first of them.
        config: budget and prices.
        forgets: True if answers of earlier revisions go; False keeps all, to be given again.

    Raises:
        CoevoError: a file is not as coevo writes it.
    """

    def __init__(self, directory: Path, config: SpendingConfig, forgets: bool = True) -> None:
        self._directory, self._config, self._forgets = directory, config, forgets
        self._reserved = CallExpense()
        self._waiting = 0
        self._has_turned = False
        self._files: list[tuple[Path, dict[str, KeptAnswer]]] = []
        self.spent = CallExpense()
        for path in sorted(directory.glob(PATTERN)):
            self._read(path)
        if not self._files:
            self._files.append((directory / NAME.format(1), {}))

    def answer(self, call: str) -> KeptAnswer | None:
        """The kept answer to a call; None if there is none."""
        return next((answers[call] for _, answers in reversed(self._files) if call in answers), None)

    def exhausted(self) -> str:
        """Reason why no more calls are made; empty while the budget lasts."""
        budget = self._config.budget
        if budget is None:
            return ""
        for name, limit, used in (
            ("tokens", budget.tokens, float(self.spent.tokens)),
            ("cost", budget.cost, self.spent.money(self._config.price)),
        ):
            if limit is not None and used >= limit:
                return f"policy.budget.{name}={limit:g} is spent ({used:g})"
        return ""

    def reserve(self, call: str, most: CallExpense) -> bool:
        """Note a call that costs so much at most; False if the budget may not pay for it beside those that wait.

        The last call alone may go beyond the budget: while no other waits, one is made as long as the budget lasts.
        """
        budget = self._config.budget
        if budget is not None:
            fits = (self.spent + self._reserved + most).within(budget, self._config.price)
            if self.exhausted() or (self._waiting and not fits):
                return False
            self._append(_line("asked", call, most))
        self._waiting, self._reserved = self._waiting + 1, self._reserved + most
        return True

    def settle(self, call: str, most: CallExpense, paid: CallExpense, answer: KeptAnswer | None = None) -> None:
        """Note what a call has cost, and keep its answer if there is one; ``most`` is what was reserved."""
        self._waiting, self._reserved = self._waiting - 1, self._reserved - most
        if answer is not None:
            self._append(_line("answered", call, paid, answer))
            self._files[-1][1][call] = answer
        elif paid.tokens or self._config.budget is not None:
            self._append(_line("paid", call, paid))
        self.spent += paid

    def keep(self, call: str, answer: KeptAnswer) -> None:
        """Keep an answer that is paid already."""
        self._files[-1][1][call] = answer
        self._append(_line("answered", call, CallExpense(), answer))

    def raise_to(self, known: CallExpense) -> None:
        """Count at least the expense that a revision states: this machine may not have the files of another."""
        more = CallExpense(
            max(0, known.prompt_tokens - self.spent.prompt_tokens),
            max(0, known.answer_tokens - self.spent.answer_tokens),
        )
        if more.tokens:
            self._append(_line("paid", "", more))
            self.spent += more

    def turn_over(self) -> None:
        """Begin the file of the next revision; answers of those that are committed go.

        The revision that ends here is not committed yet, and the first one of a process may have its answers in any
        file that earlier processes left; of a later one, they are in the latest.
        """
        if not self._forgets:
            return
        number = int(self._files[-1][0].stem.removeprefix("calls-"))
        old = self._files[:-1] if self._has_turned else []
        self._has_turned = True
        self._files.append((self._directory / NAME.format(number + 1), {}))
        self._begin(self._files[-1][0])
        for path, _ in old:
            path.unlink(missing_ok=True)
        self._files = self._files[len(old) :]

    def _begin(self, path: Path) -> None:
        """Write a file with the expense so far, whole or not at all."""
        self._directory.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            file.write(_line("before", "", self.spent).model_dump_json() + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def _append(self, line: _Line) -> None:
        path = self._files[-1][0]
        if not path.exists():
            self._begin(path)
        append_line(path, line.model_dump_json(exclude_defaults=True))

    def _read(self, path: Path) -> None:
        """Take up a file; what an earlier process wrote of a line without its end goes."""
        drop_torn_line(path)
        waiting, most, answers = Counter[str](), dict[str, CallExpense](), dict[str, KeptAnswer]()
        for line in _lines(path, path.read_bytes()):
            if line.event == "before":
                self.spent = line.expense
            elif line.event == "asked":
                waiting[line.call] += 1
                most[line.call] = line.expense
                continue
            else:
                waiting[line.call] -= 1
                self.spent += line.expense
            if line.event == "answered":
                answers[line.call] = KeptAnswer(line.text, line.finished)
        self._files.append((path, answers))
        for call, count in waiting.items():
            for _ in range(max(0, count) if call in most else 0):
                self.spent += most[call]
                self._append(_line("paid", call, most[call]))


def _line(event: Event, call: str, expense: CallExpense, answer: KeptAnswer = NO_ANSWER) -> _Line:
    return _Line(
        event=event,
        call=call,
        prompt_tokens=expense.prompt_tokens,
        answer_tokens=expense.answer_tokens,
        text=answer.text,
        finished=answer.finished,
    )


def _lines(path: Path, whole: bytes) -> Iterator[_Line]:
    try:
        for line in whole.split(b"\n")[:-1]:
            yield _Line.model_validate_json(line)
    except ValidationError:
        raise CoevoError(
            f"{path}: not a ledger of calls as coevo writes it: restore the file; without it, paid answers are asked "
            "for again and the budget forgets them"
        ) from None
