"""The packaged agent: answers single turns, each with all its context, and keeps no state.

Its draws are those of an evaluation with the same seed: keyed by task and turn. Therefore a panel played through an
agent, turn by turn, has the same outcomes as in the process of ``coevo evaluate``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from coevo.models.engines.requests import Request
from coevo.models.policy.context import Context
from coevo.records.answer_faults import Fault
from coevo.records.demonstration import Answer, Moment, Note, PastTurn
from coevo.records.draws import Key, extend, key
from coevo.records.entry import Entry
from coevo.records.episode import Completion
from coevo.tasks.package.package import Package
from coevo.tasks.play.play import OVERLONG, overlong
from coevo.tasks.play.retrieve import NO_BANK, NOT_SHOWN, Experience, Lacking, recall


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """One turn to answer. ``instruction`` and ``scope`` select the experience.

    Attributes:
        instruction: instruction of the task.
        observation: current observation.
        history: previous turns, oldest first; the action of a turn whose answer was unusable is empty.
        scope: the environment's task key; empty selects only entries without scope.
        kind: family of the task; used if pools are by kind (``bank.key``).
        id: identity of the task, which keys its draws.
        guide: how to act in the environment, in words (``Environment.guide``); part of chat prompts.
    """

    instruction: str
    observation: str
    history: tuple[PastTurn, ...] = ()
    scope: str = ""
    kind: str = ""
    id: str = ""
    guide: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Parse a row of a request; optional fields may be missing, or hold no text if only other rows have them."""
        texts = {name: row[name] for name in ("scope", "kind", "guide") if isinstance(row.get(name), str)}
        turns = row.get("history")
        history = () if turns is None or isinstance(turns, float) else turns
        return cls(
            instruction=row["instruction"],
            observation=row["observation"],
            history=tuple(PastTurn(**turn) for turn in history),
            id=row["task"] if isinstance(row.get("task"), str) else row["instruction"],
            **texts,
        )


@dataclass(frozen=True, slots=True)
class AgentReply:
    """The answer of an agent.

    Attributes:
        text: generated text.
        answer: thought and action parsed from the text; the action is empty if none was found.
        shown: experience in the prompt, best first.
        over: reason if the episode is over, in one line: unusable answers in a row (``context.invalid_limit``), or a
            prompt that is too long, which gets no answer; empty otherwise.
        no_lesson: reason why no lesson of the task's own pool is shown, in one line; empty if some are.
        logprobs: text and log-probability of each drawn token; None if they were not asked for.
    """

    text: str
    answer: Answer
    shown: tuple[Entry, ...]
    over: str = ""
    no_lesson: str = ""
    logprobs: tuple[tuple[str, float], ...] | None = None

    @property
    def fault(self) -> str:
        """Reason why there is no usable action, a ``Fault`` or ``overlong``; empty if there is one."""
        return self.answer.fault or ("" if self.answer.action else Fault.NO_ACTION)

    def row(self) -> dict[str, Any]:
        """The answer as JSON values, see ``coevo.tasks.package.signature``."""
        tokens = [{"token": text, "logprob": logprob} for text, logprob in self.logprobs or ()]
        return {
            "text": self.text,
            "thought": self.answer.thought,
            "action": self.answer.action,
            "parsed": not self.fault,
            "fault": str(self.fault),
            "over": self.over,
            "no_lesson": self.no_lesson,
            "retrieved": [{"id": entry.id, "strategy": entry.strategy} for entry in self.shown],
        } | ({} if self.logprobs is None else {"logprobs": tokens})


class Agent:
    """Agent with the policy and the bank of a package.

    Attributes:
        seed: seed of the package's run.
        engine: engine that draws its answers.
    """

    def __init__(self, package: Package) -> None:
        # As the policy, it needs PyTorch.
        from coevo.models.engines.transformers.embedded_engine import embedded_engine

        config, policy = package.config, package.policy()
        self.seed = config.seed
        self._index, self._tools, self._form = package.index(), package.tools, package.answer
        bank = config.bank
        self._lacking = None if self._index is None else Lacking(self._index)
        self._closed = NO_BANK if bank is None else NOT_SHOWN
        self._context = Context(config.context, policy.tokenizer)
        self.engine = embedded_engine(policy, config.rollout)

    def answer(self, asked: Sequence[TurnRequest], seed: int, logprobs: bool = False) -> list[AgentReply]:
        """Answer one turn each, as one batch; equal turns with equal seeds get equal answers.

        A prompt that is longer than the policy's context ends its own episode alone.

        Args:
            asked: turns.
            seed: root of the draws.
            logprobs: True to add the log-probs of the drawn tokens.

        Raises:
            CoevoError: the chat template cannot be used.
        """
        root = key(seed, "evaluate")
        seen = recall(self._index, root)
        shown = [self._context.shown(_found(each, seen), each.instruction) for each in asked]
        moments = list(map(self._moment, asked, shown))
        prompts = [self._context.prompt(moment) for moment in moments]
        cuts = [overlong(prompt, self.engine.longest_prompt) for prompt in prompts]
        completions = self._completions(asked, prompts, [row for row, cut in enumerate(cuts) if not cut], root)
        rows = zip(asked, moments, shown, cuts, strict=True)
        replies = [self._reply(*row, completions.get(number)) for number, row in enumerate(rows)]
        if logprobs:
            return [replace(each, logprobs=self._drawn(completions.get(row))) for row, each in enumerate(replies)]
        return replies

    def _completions(
        self, asked: Sequence[TurnRequest], prompts: Sequence[tuple[int, ...]], rows: Sequence[int], root: Key
    ) -> dict[int, Completion]:
        """Completions of these rows, drawn as one batch."""
        self.engine.forget()
        keys = [extend(root, asked[row].id, len(asked[row].history)) for row in rows]
        requests = [Request(prompts[row], draw, str(row)) for row, draw in zip(rows, keys, strict=True)]
        return dict(zip(rows, self.engine.generate(requests) if requests else (), strict=True))

    def _reply(
        self, asked: TurnRequest, moment: Moment, shown: tuple[Entry, ...], cut: str, completion: Completion | None
    ) -> AgentReply:
        if completion is None:
            return AgentReply("", Answer("", "", OVERLONG), (), cut)
        answer = self._context.read(completion, moment)
        lacking = self._closed if self._lacking is None else self._lacking.reason(asked, bool(shown))
        return AgentReply(completion.text, answer, shown, self._end(asked, answer), lacking)

    def _drawn(self, completion: Completion | None) -> tuple[tuple[str, float], ...]:
        """Text and log-probability of each token of a completion."""
        if completion is None:
            return ()
        texts = self.engine.policy.tokenizer.batch_decode([[token] for token in completion.token_ids])
        return tuple(zip(texts, completion.logprobs, strict=True))

    def _moment(self, asked: TurnRequest, shown: Sequence[Entry]) -> Moment:
        lessons = tuple(map(Note.of, shown))
        return Moment(
            asked.instruction, lessons, asked.history, asked.observation, asked.guide, self._tools, form=self._form
        )

    def _end(self, asked: TurnRequest, answer: Answer) -> str:
        """Reason if the answer, or the turns before it, have ended the episode; empty otherwise."""
        usable = [bool(action) for action in (*(turn.action for turn in asked.history), answer.action)]
        if not (self._context.gives_up(usable) or self._context.gives_up(usable[:-1])):
            return ""
        limit = self._context.invalid_limit
        return f"the episode is over: {limit} unusable answers in a row reach context.invalid_limit={limit}"


def _found(asked: TurnRequest, seen: Experience) -> tuple[Entry, ...]:
    return tuple(dict.fromkeys((*seen.of_task(asked), *seen.of_step(asked, asked.observation))))
