"""The environment over a table of tasks: a prompt, an answer, and functions that reward it."""

from collections.abc import Mapping, Sequence

from coevo.configs.rows_config import DEMONSTRATION, HELD_OUT, FunctionRewardConfig, RowsConfig, columns_of
from coevo.configs.run_config import digest
from coevo.envs.base import Environment, Guide, Probe, Step
from coevo.envs.failures import EpisodeFailure, sound
from coevo.envs.rows.function_pool import CallOutcome, FunctionCalls, FunctionPool
from coevo.envs.rows.python_tools import ANSWER, ANSWERING, ToolCall, python_tools, read_call
from coevo.envs.rows.row_rewards import RowReward, least_reward, rewards_of
from coevo.envs.rows.table_splits import RowTasks, text_of
from coevo.envs.rows.task_table import Row, TaskTable, load_table
from coevo.envs.rows.user_functions import reward_function
from coevo.records.answer_form import WholeForm
from coevo.records.demonstration import Answer, Demonstration, Moment
from coevo.records.draws import Key, extend, generator
from coevo.records.inert import encodable
from coevo.records.task import Panel, Task
from coevo.utilities.errors import CoevoError

START = "the task is open"
"""First observation."""
ANSWERED = "Your action is the answer to the task."
CALLED = f"Call tools as you need them, then end the task with {ANSWER}."
"""Guides of a table without instructions."""
MAX_RESULT_CHARS = 100_000
"""Most characters of a tool's result."""
DECIDING = {"prompt", "reward", "success", "instructions", "feedback", "tools"}
"""Settings that decide how a row plays."""


class Rows(Environment[Task]):
    """A table of tasks with a reward function: one answer per task, or calls of Python functions before it.

    A task holds its row, so that it plays alike wherever the table is. Functions run in worker processes; one that
    raises, hangs or returns something else than a number of its range loses the episode, and never the run.
    """

    name, version = "rows", "1"
    panels: Mapping[str, str] = {HELD_OUT: "rows that training leaves out"}
    expert_guesses = False
    concurrent = True

    def __init__(self, config: RowsConfig) -> None:
        """Args:
        config: the table and its functions, which are imported here.

        Raises:
            ConfigError: the table cannot be read, a column is missing, or a function cannot be used.
        """
        self.config, self.table = config, load_table(config.path)
        _check_columns(config, self.table)
        self._tasks = RowTasks(self.table, config, self.task)
        self.splits, self.panels = self._tasks.splits, self._tasks.panels
        self.reward_range, self.has_expert = (
            _with_zero(*config.reward_range),
            config.answer is not None and not config.tools,
        )
        self.version = f"1-{digest(config.model_dump(mode='json', include=DECIDING))[:8]}"
        self._tools = {tool.name: tool for tool in python_tools(config.tools)}
        for each in config.reward:
            if isinstance(each, FunctionRewardConfig):
                reward_function(each)
        self._pool = FunctionPool((*config.reward, *config.tools), config.tool_seconds, config.workers)
        schemas = [tool.schema for tool in self._tools.values()]
        guidance = config.instructions or (CALLED if schemas else ANSWERED)
        self._guide = Guide(guidance, tools=(*schemas, ANSWERING)) if schemas else Guide(guidance, answer=WholeForm())

    def task(self, row: Row, split: str) -> Task:
        """Task of a row."""
        prompt, scope = text_of(row, self.config.prompt), text_of(row, self.config.scope)
        return Task(self.name, "row", prompt, scope, split, {"row": dict(row)})

    def sample(self, count: int, key: Key) -> list[Task]:
        """Draw training rows, each once; all of them if there are no more."""
        return self._tasks.sample(count, key)

    def panel(self, name: str, size: int) -> Panel:
        """Held-out rows in the order of their ids, so that a smaller panel is a part of a larger one."""
        return Panel(name, self.version, self._tasks.panel(name, size))

    def guide(self, task: Task) -> Guide:
        """The instructions, and the tools with their schemas."""
        return self._guide

    def start(self, task: Task) -> tuple[Task, str]:
        """The task itself: it is all that a step depends on."""
        if not isinstance(task.data.get("row"), Mapping):
            raise CoevoError("the task has no row: its data are {'row': {COLUMN: VALUE, …}}")
        return task, START

    def step(self, states: Sequence[Task], actions: Sequence[str]) -> list[Step[Task]]:
        """Advance a batch of episodes by an answer or a call each.

        Raises:
            EpisodeLostError: a function failed in one of them.
        """
        return [sound(step) for step in self.try_step(states, actions)]

    def try_step(self, states: Sequence[Task], actions: Sequence[str]) -> list[Step[Task] | EpisodeFailure]:
        """Reward the answers, all together, and call the tools; a failure costs only its own episode."""
        read = [self._read(action) for action in actions]
        calls = {index: each for index, each in enumerate(read) if isinstance(each, ToolCall)}
        answers = {index: call.arguments[ANSWER] for index, call in calls.items() if call.name == ANSWER}
        answered = [(answer, states[index].data["row"]) for index, answer in answers.items()]
        rewards = dict(zip(answers, self.rewards(answered), strict=True))
        results = self._called({index: call for index, call in calls.items() if index not in answers})
        found: list[Step[Task] | EpisodeFailure] = []
        for index, (task, each) in enumerate(zip(states, read, strict=True)):
            if index in rewards:
                found.append(self._rewarded(task, rewards[index]))
            else:
                found.append(_told(task, results[index]) if index in results else self._refused(task, str(each)))
        return found

    def rewards(self, answers: Sequence[tuple[str, Row]]) -> list[RowReward | EpisodeFailure]:
        """Reward of each answer to its row, or the first failure of a reward function."""
        return rewards_of(self.config, self._pool, answers)

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Words of the columns that prompts, answers and feedback are made of."""
        columns = (self.config.prompt, self.config.answer, self.config.feedback)
        texts = [text_of(row, column) for row in self.table.rows for column in columns]
        return tuple(sorted({*START.split(), *(word for text in texts for word in text.split())}))

    def advise(self, state: Task, moment: Moment, key: Key) -> Answer:
        """The row's right answer, which no policy sees."""
        if not self.has_expert:
            return super().advise(state, moment, key)
        return Answer("", text_of(state.data["row"], self.config.answer))

    def demonstrations(self, episodes: int, drills: int, key: Key) -> list[Demonstration]:
        """Rows of the split ``demonstration`` with their right answers; a drill is another one."""
        rows = self._shown("demonstrations")
        drawn = generator(key).choice(len(rows), episodes + drills, replace=True)
        return [
            Demonstration(
                Moment(text_of(row, self.config.prompt), (), (), START, self._guide.text, form=self._guide.answer),
                Answer("", text_of(row, self.config.answer)),
            )
            for row in (rows[index] for index in drawn)
        ]

    def probe(self, size: int, key: Key) -> Probe:
        """Rows of the split ``demonstration``, without lessons."""
        rows = self._shown("probe")
        drawn = generator(extend(key, "rows")).permutation(len(rows))[:size]
        tasks = tuple(self.task(rows[index], "probe") for index in drawn)
        return Probe(tasks, ((),) * len(tasks), ())

    def _shown(self, part: str) -> list[Row]:
        """Rows of demonstrations. Raises ``MissingPartError`` if there are none, or no right answers."""
        rows = self.splits.get(DEMONSTRATION, [])
        if not rows or not self.has_expert:
            raise self.untaught(part)
        return rows

    def _read(self, action: str) -> ToolCall | str:
        """A call or an answer; a text that is neither, as why it is none."""
        if self._tools:
            return read_call(action, self._tools)
        return ToolCall(ANSWER, {ANSWER: encodable(action)}) if action.strip() else "there is no answer"

    def _called(self, calls: Mapping[int, ToolCall]) -> dict[int, CallOutcome | EpisodeFailure]:
        references = {reference.partition(":")[2]: reference for reference in self.config.tools}
        asked = [FunctionCalls(references[call.name], [(dict(call.arguments),)]) for call in calls.values()]
        return {index: outcome for index, (outcome,) in zip(calls, self._pool.call(asked), strict=True)}

    def _rewarded(self, task: Task, reward: RowReward | EpisodeFailure) -> Step[Task] | EpisodeFailure:
        if isinstance(reward, EpisodeFailure):
            return reward
        told = text_of(task.data["row"], self.config.feedback) or str(reward)
        success = reward.total >= self.config.least
        return Step(task, told, told, reward.total, done=True, success=success, scores=reward.scores)

    def _refused(self, task: Task, why: str) -> Step[Task]:
        """A step without a usable action: it ends a task that takes one answer."""
        if self._tools:
            return Step(task, why, why, 0.0, done=False, success=False, valid=False)
        worst = least_reward(self.config)
        return Step(task, why, why, worst.total, done=True, success=False, valid=False, scores=worst.scores)


def _told(task: Task, outcome: CallOutcome | EpisodeFailure) -> Step[Task] | EpisodeFailure:
    """A step with the result of a tool."""
    if isinstance(outcome, EpisodeFailure):
        return EpisodeFailure(outcome.kind, f"tool: {outcome.detail}")
    told = encodable(outcome.refused or str(outcome.value))
    if len(told) > MAX_RESULT_CHARS:
        return EpisodeFailure(
            "invalid", f"tool: a result of {len(told)} characters, more than {MAX_RESULT_CHARS}: return less"
        )
    return Step(task, told, told, 0.0, done=False, success=False, valid=not outcome.refused)


def _check_columns(config: RowsConfig, table: TaskTable) -> None:
    """Check that the table has what the settings name. Raises ``ConfigError``."""
    for setting in ("prompt", "split", "scope", "answer", "feedback"):
        column = getattr(config, setting)
        if column is not None:
            table.require(column, f"env.{setting}")
    for each in config.reward:
        for column in sorted(columns_of(getattr(each, "prompt", "")) - {"answer"}):
            table.require(column, f"env.reward {each.title}: prompt names {{{column}}}")


def _with_zero(low: float, high: float) -> tuple[float, float]:
    """A range of rewards with that of an episode which ends before its answer."""
    return min(0.0, low), max(0.0, high)
