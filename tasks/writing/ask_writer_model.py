"""Asking of a writer model: what is answered already is not asked again, and nothing is asked beyond the budget."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property, partial
from time import monotonic

from coevo.configs.bank.writer_model_config import WriterModelConfig
from coevo.memory.writers.writer import Ask, AskFunction, Reject, nobody
from coevo.models.writer_models.writer_model import WriterModel, room_of, traffic_of
from coevo.records.writing import Question, QuestionRoom, Reply
from coevo.tasks.publish.reporter import counting
from coevo.tasks.writing.artifact import KeptWriting
from coevo.tasks.writing.journal import Answered, Journal
from coevo.tasks.writing.spent import QuestionExpense, affordable, exhausted, money
from coevo.utilities.errors import CoevoError

UNANSWERED = "the writer model gave no reply"
LATE = "the time for the questions of a firing is over: raise bank.writer.model.seconds"
ASIDE = "aside"
"""Purpose of a line of the journal that has only the expense of a question about a held-out panel."""


class Writing:
    """The questions of a run's writer to its writer model, and the answers so far.

    Attributes:
        rewarded: answers of the policy that the next update learns from.
    """

    def __init__(
        self,
        writer_model: WriterModel,
        config: WriterModelConfig,
        journal: Journal,
        kept: KeptWriting,
        warn: Callable[[str], None],
        learns: bool = False,
    ) -> None:
        """Take up the writing of a run.

        Args:
            writer_model: answers the questions.
            config: settings of the writer model.
            journal: answers of the revision in the making.
            kept: what the last revision keeps.
            warn: reports that questions are not answered.
            learns: keep the tokens of answers, from which the policy learns to write.
        """
        self.rewarded = list(kept.rewarded)
        self._learns = learns
        self._writer_model, self._config, self._journal, self._warn = writer_model, config, journal, warn
        self._identity = config.model_dump_json(exclude={"budget", "price"})
        sound = [found for found in journal.answers if not found.reply.fault]
        self._answers = {found.digest: found for found in (*kept.answers, *sound)}
        self._spent = kept.spent.plus(found.reply for found in journal.answers)
        self._counted: set[str] = set()
        refused = [found for found in journal.answers if found.reply.fault]
        self._used = [found.reply for found in refused if found.purpose != ASIDE]
        self._examined = [found.reply for found in refused if found.purpose == ASIDE]
        self._rejects: list[Reject] = []
        self._sent = traffic_of(writer_model)

    def ask(self, revision: int, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, in order; without an answer it has a fault.

        Args:
            revision: number of the revision in the making.
            questions: equal ones are asked once.
        """
        digests = [self._digest(question) for question in questions]
        asked = dict(zip(digests, questions, strict=True))
        faults = self._put(revision, {digest: asked[digest] for digest in asked if digest not in self._answers})
        new = [digest for digest in asked if digest not in self._counted and self._is_of(revision, digest)]
        self._counted.update(new)
        self._used += [self._answers[digest].reply for digest in new]
        self._report(list(faults.values()), len(asked))
        return [
            self._answers[digest].reply if digest in self._answers else Reply("", False, fault=faults[digest])
            for digest in digests
        ]

    def aside(self, revision: int, questions: Sequence[Question]) -> list[Reply]:
        """One reply per question, of which nothing but the expense is kept: those about a held-out panel."""
        found = dict[int, Reply]()
        for index, reply in self._replies(questions):
            found[index] = reply
            self._examined += self._paid(revision, Question(ASIDE, "", (), "", ""), "", reply)
        replies = [found[index] for index in range(len(questions))]
        self._report([reply.fault for reply in replies if reply.fault], len(replies))
        return replies

    def _report(self, faults: Sequence[str], asked: int) -> None:
        """Warn of questions without an answer, with the most frequent reason."""
        if faults:
            reason = Counter(faults).most_common(1)[0][0]
            self._warn(f"{len(faults)} of {asked} questions of the writer were not answered: {reason}")

    @cached_property
    def room(self) -> QuestionRoom:
        """Room that the writer model has for a question; a frozen model is loaded for it."""
        return room_of(self._writer_model)

    def refused(self, rejects: Iterable[Reject]) -> None:
        """Keep refused parts of answers for audit."""
        self._rejects += rejects

    def cost(self) -> dict[str, float]:
        """Cost of the answers of this revision that were used since the last call; each counts once."""
        used, self._used = self._used, []
        return self._cost("writing", used)

    def cost_aside(self) -> dict[str, float]:
        """Cost of the questions about held-out panels since the last call; empty without any."""
        examined, self._examined = self._examined, []
        return self._cost("evaluation", examined) if examined else {}

    def requests(self) -> dict[str, float]:
        """Requests to an endpoint since the last revision, those included that no answer came to; else empty.

        They depend on the endpoint's load, so that a repeated run has others.
        """
        sent = traffic_of(self._writer_model)
        return {f"cost/writer_model/{name}": float(n - self._sent.get(name, 0)) for name, n in sent.items()}

    def _cost(self, part: str, replies: Iterable[Reply]) -> dict[str, float]:
        spent = QuestionExpense().plus(replies)
        priced = {} if self._config.price is None else {f"cost/{part}/money": money(spent, self._config)}
        return {
            f"cost/{part}/questions": spent.questions,
            f"cost/{part}/prompt_tokens": spent.prompt_tokens,
            f"cost/{part}/answer_tokens": spent.answer_tokens,
        } | priced

    def freeze(self, revision: int, episodes: Iterable[str]) -> KeptWriting:
        """Answers that the revision keeps: its own, and those about episodes that the writer has yet to read."""
        self._journal.drop(before=revision)
        awaited = set(episodes)
        self._answers = {
            digest: found
            for digest, found in self._answers.items()
            if found.revision == revision or awaited.intersection(found.episodes)
        }
        answers = tuple(self._answers[digest] for digest in sorted(self._answers))
        kept = KeptWriting(answers, self._spent, tuple(self._rejects), tuple(self.rewarded))
        self._rejects, self._sent = [], traffic_of(self._writer_model)
        return kept

    def _digest(self, question: Question) -> str:
        """Digest of a question to this writer model: another writer model would answer otherwise."""
        return hashlib.sha256(f"{self._identity}\n{question.digest}".encode()).hexdigest()

    def _is_of(self, revision: int, digest: str) -> bool:
        return digest in self._answers and self._answers[digest].revision == revision

    def _put(self, revision: int, missing: Mapping[str, Question]) -> dict[str, str]:
        """Put questions to the writer model and keep the answers; return the reason for each one without an answer."""
        digests, faults = list(missing), dict[str, str]()
        for index, reply in self._replies(list(missing.values())):
            digest = digests[index]
            if reply.fault:
                faults[digest] = reply.fault
                self._used += self._paid(revision, missing[digest], digest, reply)
            else:
                kept = reply if self._learns else replace(reply, drawn=None)
                self._answers[digest] = Answered.of(revision, missing[digest], digest, kept)
                self._journal.append(self._answers[digest])
        return faults

    def _paid(self, revision: int, question: Question, digest: str, reply: Reply) -> list[Reply]:
        """The expense of a reply of which nothing else is kept; empty if it costs nothing.

        With a budget the journal has it, too, so that a kill refunds nothing. Without one it does not: a resumed run,
        which asks again, has the same state as an uninterrupted one.
        """
        if not (reply.prompt_tokens or reply.answer_tokens):
            return []
        expense = replace(reply, text="", drawn=None, fault=reply.fault or ASIDE)
        if self._config.budget is not None:
            self._journal.append(Answered.of(revision, question, digest, expense))
        return [expense]

    def _replies(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """One reply per question, as they arrive; once the budget or the time is over, the others get a fault."""
        left, over, until = list(range(len(questions))), "", monotonic() + self._config.seconds
        counted = counting(f"{{answered}} of {len(questions)} questions are answered")
        while left and not (over := over or exhausted(self._spent, self._config)):
            batch = left[: affordable([questions[index] for index in left], self._spent, self._config)]
            try:
                for number, reply in self._paid_for([questions[index] for index in batch]):
                    left.remove(batch[number])
                    counted(answered=1)
                    yield batch[number], reply
            except CoevoError as error:
                over = str(error)  # the writer model ends; the run does not
            over = over or (LATE if monotonic() >= until else UNANSWERED if {*batch} & {*left} else "")
        yield from ((index, Reply("", False, fault=over)) for index in left)

    def _paid_for(self, questions: Sequence[Question]) -> Iterator[tuple[int, Reply]]:
        """Replies as they arrive, each of which counts towards the budget: a refusal costs as well."""
        with closing(self._writer_model.replies(questions)) as replies:
            for index, reply in replies:
                self._spent = self._spent.plus([reply])
                yield index, reply


def ask_of(writing: Writing | None, revision: int) -> Ask:
    """Function that puts questions for the revision in the making; without writing it refuses."""
    return nobody if writing is None else AskFunction(partial(writing.ask, revision), lambda: writing.room)


def aside_of(writing: Writing | None, revision: int) -> Ask:
    """Function that puts questions about held-out episodes, of which nothing is kept; without writing it refuses."""
    return nobody if writing is None else AskFunction(partial(writing.aside, revision), lambda: writing.room)
