"""The packaged agent: asked for one turn at a time, and told everything that the turn needs. It remembers nothing.

Draws are those of an evaluation with the same seed: keyed by task and turn. So a panel that is played through an agent,
turn by turn, ends as it does in the process of ``coevo evaluate``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.context import Context
from models.engines.base import Request
from models.engines.transformers import embedded_engine
from records.demonstration import Answer, Moment, PastTurn
from records.draws import extend, key
from records.entry import Entry
from tasks.package import Package
from tasks.retrieve import Experience, recall


@dataclass(frozen=True, slots=True)
class Asked:
    """What an agent is told of a turn. With ``instruction`` and ``scope`` it finds its experience.

    Attributes:
        instruction: what it is asked to do.
        observation: what it sees.
        history: the turns before, oldest first.
        scope: the environment's task key; empty finds only entries that hold everywhere.
        kind: family of the task; matters where pools are by kind (``bank.key``).
        id: identity of the task, which its draws depend on.
    """

    instruction: str
    observation: str
    history: tuple[PastTurn, ...] = ()
    scope: str = ""
    kind: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answers.

    Attributes:
        text: as it was generated.
        answer: the thought and the action read from it; the action is empty where none could be read.
        shown: the experience in the prompt, best first.
    """

    text: str
    answer: Answer
    shown: tuple[Entry, ...]


class Agent:
    """Plays with the policy and the bank of a package."""

    def __init__(self, package: Package) -> None:
        config, policy = package.config, package.policy()
        self.seed = config.seed
        self._index = package.index()
        self._context = Context(config.context, policy.tokenizer)
        self._engine = embedded_engine(policy, config.rollout)

    def answer(self, asked: Sequence[Asked], seed: int) -> list[Reply]:
        """One turn of each, generated as one batch; equal questions with equal seeds are answered alike.

        Raises:
            CoevoError: a prompt is longer than the policy can attend to.
        """
        root = key(seed, "evaluate")
        seen = recall(self._index, root)
        shown = [self._context.shown(_found(each, seen)) for each in asked]
        prompts = [self._context.prompt(_moment(*pair)) for pair in zip(asked, shown, strict=True)]
        self._engine.forget()
        completions = self._engine.generate(
            [
                Request(prompt, extend(root, each.id, len(each.history)), str(row))
                for row, (each, prompt) in enumerate(zip(asked, prompts, strict=True))
            ]
        )
        texts = [completion.text for completion in completions]
        return [Reply(text, self._context.read(text), entries) for text, entries in zip(texts, shown, strict=True)]


def _found(asked: Asked, seen: Experience) -> tuple[Entry, ...]:
    return tuple(dict.fromkeys((*seen.of_task(asked), *seen.of_step(asked, asked.observation))))


def _moment(asked: Asked, shown: Sequence[Entry]) -> Moment:
    return Moment(asked.instruction, tuple(entry.strategy for entry in shown), asked.history, asked.observation)
