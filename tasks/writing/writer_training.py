"""Training of a small writer model on other worlds: answered questions about expert episodes, and an examination."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from numpy.random import Generator

from coevo.configs.bank.writer import ModelWriterConfig
from coevo.configs.rollout.rollout_config import TransformersEngineConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment, MissingPartError
from coevo.envs.failures import sound
from coevo.memory.evidence.contrasts import pivot
from coevo.memory.evidence.references import References
from coevo.memory.library import Library
from coevo.memory.writers.model import words
from coevo.memory.writers.writer import AskFunction, Evidence, Writer, writer_of
from coevo.models.writer_models.writer_model import WriterModel, in_order, room_of
from coevo.records.demonstration import Answer, Moment
from coevo.records.draws import Key, extend, generator, key
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import BY_SCOPE, Task, key_by
from coevo.records.task import KeyFunction as PoolKey
from coevo.records.writing import Question, Reply
from coevo.tasks.play.turns import Acted, turn_by_turn
from coevo.utilities.errors import CoevoError, ConfigError

NOISE = 0.15
"""Share of actions that are drawn at random instead of asked of the expert: policies err as well."""
MAX_TURNS = 64
"""Maximum turns of an episode that is taught."""
NOTHING = Completion((), (), "", True)

TeacherAnswer = tuple[Question, str]


@dataclass(frozen=True, slots=True)
class Chance:
    """Parts of a taught answer that are drawn, so that training has something to choose.

    Attributes:
        guesses: True if predictions are.
        share: probability with which a lesson is written.
        asides: probability with which a line is written that reveals nothing.
    """

    guesses: bool = False
    share: float = 1.0
    asides: float = 0.0


CERTAIN = Chance()


def answered(
    env: Environment[object],
    writer: Writer,
    key: PoolKey,
    played: Sequence[Episode],
    draw: Key,
    chance: Chance = CERTAIN,
) -> list[TeacherAnswer]:
    """Questions of a writer about expert episodes, each with the answer of a perfect writer model.

    Args:
        env: environment that knows what its episodes reveal.
        writer: writer that asks.
        key: pool of a task.
        played: the episodes, see ``expert_episodes``.
        draw: root of the draws.
        chance: parts of the answers that are drawn.

    Raises:
        ConfigError: the environment has no expert, or does not know what its episodes reveal.
    """
    teacher = Teacher(env, played, extend(draw, "guess"), chance)
    writer.write(Evidence(played, Library(()), References(key, 0), 0, teacher))
    return teacher.answered


def expert_episodes(env: Environment[object], tasks: Sequence[Task], replicas: int, draw: Key) -> list[Episode]:
    """Some episodes of the expert for each task; tasks are of other worlds than those of training and evaluation."""
    return [episode(env, task, n, extend(draw, task.id, n)) for task in tasks for n in range(replicas)]


def episode(env: Environment[object], task: Task, replica: int, draw: Key, noise: float = NOISE) -> Episode:
    """Episode of the expert without notes, with some actions at random."""
    guide, rng = sound(env.try_guide(task)), generator(extend(draw, "noise"))

    def act(state: object, moment: Moment) -> Answer | None:
        astray = rng.random() < noise and bool(guide.verbs)
        try:
            answer = env.advise(state, moment, extend(draw, len(moment.history)))
        except CoevoError:
            return None  # a random action has led where the expert knows no way
        return Answer("", guide.verbs[int(rng.integers(len(guide.verbs)))]) if astray else answer

    played = list(turn_by_turn(env, task, guide, act, MAX_TURNS))
    last = played[-1].step if played else None
    return Episode(
        id=Episode.name(0, "teach", task, replica),
        task=task,
        revision=0,
        replica=replica,
        turns=tuple(map(_turn, played)),
        success=last is not None and last.success,
        truncated=last is None or not last.done,
        progress=None if last is None else last.progress,
    )


def _turn(acted: Acted) -> Turn:
    step = acted.step
    return Turn(acted.moment.observation, (), NOTHING, acted.answer.action, step.feedback, step.reward, step.valid)


class Teacher:
    """Perfect writer model for episodes of an environment that knows what they reveal; it keeps what it was asked.

    Args:
        env: environment of the episodes.
        episodes: those that may be asked about.
        draw: root of the draws.
        chance: parts of the answers that are drawn.
    """

    def __init__(
        self, env: Environment[object], episodes: Sequence[Episode], draw: Key, chance: Chance = CERTAIN
    ) -> None:
        self._env = env
        self._draw, self._chance = draw, chance
        self._episodes = {each.id: each for each in episodes}
        self.answered: list[TeacherAnswer] = []

    def __call__(self, questions: Sequence[Question]) -> list[Reply]:
        """Answer as the environment would."""
        for question in questions:
            shown = [self._episodes[name] for name in question.episodes]
            form = FORMS.get(question.purpose)
            if form is None:
                raise ConfigError(f"there is no teacher for {question.purpose}: choose another bank.writer.type")
            rng = generator(extend(self._draw, shown[0].id))
            fields = form(shown)
            if self._chance.guesses and "success" in fields:
                fields["success"] = bool(rng.integers(2))
            fields["lessons"] = self._told(question.purpose, shown, rng)
            text = json.dumps(fields) if question.schema else words.written(fields | {"subtasks": parts_of(shown[0])})
            self.answered.append((question, text))
        return [Reply(text, True) for _, text in self.answered[-len(questions) :]]

    def _told(self, purpose: str, shown: Sequence[Episode], rng: Generator) -> list[dict[str, Any]]:
        """The lessons and lines that the draws choose; with lines of the first attempt, by step."""
        share, more = self._chance.share, self._chance.asides
        told = [each for each in self._lessons(purpose, shown) if share == 1 or rng.random() < share]
        if not more or rng.random() >= more:
            return told
        known = {found.step for found in self._revealed(shown[0])}
        steps = [step for step in range(len(shown[0].turns)) if step not in known]
        return sorted([*told, *_aside(steps, shown[0], rng)], key=itemgetter("attempt", "step"))

    def _lessons(self, purpose: str, shown: Sequence[Episode]) -> Iterator[dict[str, Any]]:
        written = set[str]()
        for number, each in enumerate(shown, 1):
            for found in self._revealed(each):
                if found.note not in written:
                    written.add(found.note)
                    where = {"attempt": number, "step": found.step + 1}
                    yield {"lesson": found.note, "when": found.when, "when_not": "", **where, **MORE.get(purpose, {})}

    def _revealed(self, each: Episode) -> Any:
        try:
            return self._env.revealed(each)
        except MissingPartError as error:
            raise ConfigError(f"{error}: it cannot train a writer model") from None


def _aside(steps: Sequence[int], shown: Episode, rng: Generator) -> list[dict[str, Any]]:
    """Action and answer of one of some steps; none without any step."""
    if not steps:
        return []
    step = int(rng.choice(steps))
    turn = shown.turns[step]
    line = {"lesson": f"{turn.action} {turn.feedback}", "when": shown.task.instruction, "when_not": ""}
    return [line | {"attempt": 1, "step": step + 1}]


def _contrast(shown: Sequence[Episode]) -> dict[str, Any]:
    """The first wrong step: where a failure parts from a success, else its last one; 0 for a success."""
    if shown[0].success is not shown[-1].success:
        return {"first_wrong_step": min(pivot(*shown) + 1, len(shown[1].turns))}
    return {"first_wrong_step": 0 if shown[0].success else len(shown[0].turns)}


def parts_of(played: Episode) -> list[dict[str, Any]]:
    """Subtasks that express an episode's progress; without progress, the task is the only one."""
    share = Fraction(float(played.success) if played.progress is None else played.progress)
    share = share.limit_denominator(words.MAX_NUMBER)
    parts = range(1, share.denominator + 1)
    return [{"subtask": f"part {part} of {share.denominator}", "done": part <= share.numerator} for part in parts]


def _reflection(shown: Sequence[Episode]) -> dict[str, Any]:
    return {"subtasks": [{"subtask": shown[0].task.instruction, "done": shown[0].success}], "success": shown[0].success}


def _nothing(shown: Sequence[Episode]) -> dict[str, Any]:
    return {}


FORMS: Mapping[str, Callable[[Sequence[Episode]], dict[str, Any]]] = {
    "contrast": _contrast,
    "reflection": _reflection,
    "strategies": _nothing,
    "warnings": _nothing,
}
"""Fields of an answer beside its lessons, by purpose."""
MORE: Mapping[str, Mapping[str, Any]] = {"strategies": {"level": "pattern"}, "warnings": {"level": "pattern"}}
"""Fields of a lesson beside those of all purposes."""


VOCABULARY_TASKS = 96
"""Tasks whose questions give the tokenizer its words."""
TASKS, REPLICAS = 32, 2
"""Tasks of the examination, and episodes of each task."""
NONE = References(BY_SCOPE, 0)


@dataclass(frozen=True, slots=True)
class Grade:
    """Result of an examination in a world that was not trained on.

    Attributes:
        proposed: number of lessons that the writer model wrote.
        true: number of them that are true notes of the world.
        revealed: number of true notes that the episodes of the questions reveal.
    """

    proposed: int
    true: int
    revealed: int


def train_writer_model(
    config: RunConfig, env: Environment[object], directory: Path, steps: int, tasks: int, note: Callable[[str], None]
) -> Grade:
    """Train a writer model for the writer of a configuration, and save it in a new directory.

    Args:
        config: configuration whose writer asks the writer model.
        env: its environment.
        directory: target directory.
        steps: number of optimizer steps.
        tasks: number of tasks per step, each of another world, with two episodes.
        note: reports progress.

    Raises:
        ConfigError: the writer asks no model, or the environment does not know what its episodes reveal.
    """
    from coevo.models.engines.transformers.embedded_engine import TransformersEngine
    from coevo.models.policy.policy import save
    from coevo.models.writer_models.engine_writer_model import EngineWriterModel
    from coevo.models.writer_models.student import student, train

    bank = config.bank
    if bank is None or not isinstance(bank.writer, ModelWriterConfig):
        raise ConfigError("no writer of this recipe asks a model: set bank.writer.type=model-contrast")
    asked, pool, base = bank.writer.model, key_by(bank.key), key(config.seed, "author")
    writer = writer_of(bank.writer, pool)

    def material(draw: Key, count: int) -> list[TeacherAnswer]:
        return answered(env, writer, pool, expert_episodes(env, env.probe(count, draw).tasks, REPLICAS, draw), draw)

    def progress(step: int, loss: float) -> None:
        note(f"writer model: step {step} of {steps}, loss {loss:.3f} nats per token")

    writer_model = student(material(extend(base, "words"), VOCABULARY_TASKS), extend(base, "weights"))
    writer_model = train(writer_model, lambda step: material(extend(base, "step", step), tasks), steps, progress)
    unfinished = directory.with_name(f".{directory.name}.part")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    save(writer_model, unfinished)
    unfinished.rename(directory)
    engine = TransformersEngine(writer_model, TransformersEngineConfig(), config.rollout.sampling)
    return examine(env, writer, EngineWriterModel(asked, engine, {}, config.seed), extend(base, "exam"))


def examine(env: Environment[object], writer: Writer, writer_model: WriterModel, draw: Key) -> Grade:
    """Compare the lessons that a writer model writes in another world with its true notes."""
    played = expert_episodes(env, env.probe(TASKS, draw).tasks, REPLICAS, draw)
    shown = set[str]()

    def ask(questions: Sequence[Question]) -> list[Reply]:
        shown.update(name for question in questions for name in question.episodes)
        return in_order(writer_model, questions)

    evidence = Evidence(played, Library(()), NONE, 0, AskFunction(ask, partial(room_of, writer_model)))
    said = {entry.strategy for entry in writer.write(evidence).entries}
    # A writer does not ask about every episode.
    true = {found.note for each in played if each.id in shown for found in env.revealed(each)}
    return Grade(len(said), len(said & true), len(true))
