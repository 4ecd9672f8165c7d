"""Tasks of a taskset of verifiers (v1) in worker processes: a prompt, calls of toolsets, an answer, and its rewards.

The harness and the containers of verifiers stay out: tools are called here, and coevo's policy is the agent. A task
that cannot be played so is refused before a run.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from coevo.envs.adapters.episode_parts import (
    OPEN,
    GlobalDraws,
    awaited,
    bounded,
    facts_or_refusal,
    imported,
    last_step,
    number,
    shown,
)
from coevo.envs.base import Step
from coevo.envs.rows.python_tools import ANSWER, ANSWERING, NO_CALL, PythonTool, check_names, python_tool, read_call
from coevo.records.draws import Key, seed_of
from coevo.records.inert import encodable
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

ANSWERED = "Your action is the answer to the task."
CALLED = f"Call tools as you need them, then end the task with {ANSWER}."


@dataclass(frozen=True)
class VerifiersSimulator:
    """Source of episodes.

    Attributes:
        settings: ``taskset``, ``options``, ``tasks``, ``steps`` and ``success`` of ``VerifiersConfig``, and ``longest``
            of its simulator.
    """

    settings: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        """The tasks, and the tools that all of them have."""
        return facts_or_refusal(self._facts)

    async def open(self, task: Task, key: Key) -> tuple["VerifiersEpisode", str]:
        """Start the task of a row."""
        row, draws = task.data["row"], GlobalDraws(seed_of(key))
        with draws:
            taskset, found = self._taskset()
            if row["index"] >= len(found) or found[row["index"]].hash != row["hash"]:
                raise CoevoError(f"env.taskset: the taskset has another task {row['index']} than the run was made with")
            toolsets = _toolsets(taskset, found[row["index"]])
            for each in toolsets:
                await awaited(each.setup())
                await awaited(each.setup_task(found[row["index"]].data))
            episode = VerifiersEpisode(found[row["index"]], toolsets, self.settings, draws)
            await awaited(episode.task.setup(episode.trace, None))
        return episode, OPEN

    def _facts(self) -> Mapping[str, Any]:
        taskset, tasks = self._taskset()
        if not tasks:
            raise CoevoError(f"env.taskset={self.settings['taskset']}: it has no task")
        for task in tasks:
            _check_playable(task)
        tools = _tools(_toolsets(taskset, tasks[0]))
        schemas = [*(tool.schema for _, tool in tools.values()), ANSWERING] if tools else []
        rows = [{"index": index, "hash": task.hash, "prompt": _prompt(task)} for index, task in enumerate(tasks)]
        return {
            "guide": CALLED if tools else ANSWERED,
            "tools": schemas,
            "answer": "" if tools else "whole",
            "rows": rows,
        }

    def _taskset(self) -> tuple[Any, list[Any]]:
        text = json.dumps(self.settings["options"], sort_keys=True)
        return _loaded(self.settings["taskset"], text, self.settings["tasks"])


@lru_cache(maxsize=1)
def _loaded(reference: str, options: str, count: int) -> tuple[Any, list[Any]]:
    """A taskset and its first tasks, loaded once in a process. Raises ``CoevoError``."""
    try:
        import verifiers.v1 as library
        from verifiers.v1.utils.generic import concrete_type
        from verifiers.v1.utils.loaders import taskset_class
    except ImportError as error:
        raise CoevoError(
            f"verifiers is not installed in env.python ({error}): name an interpreter that has it"
        ) from None
    try:
        kind = imported("env.taskset", reference) if ":" in reference else taskset_class(reference)
    except (ImportError, TypeError, AttributeError) as error:
        raise CoevoError(f"env.taskset={reference}: it is no taskset ({error})") from error
    settings = concrete_type(kind, library.TasksetConfig, origin=library.Taskset) or library.TasksetConfig
    try:
        taskset = kind(settings.model_validate(json.loads(options)))
        return taskset, list(islice(iter(taskset), count))
    except ValueError as error:
        said = " ".join(str(error).split())[:200]
        raise CoevoError(f"env.options: {kind.__name__} refuses {options}: {said}") from error


@dataclass
class VerifiersEpisode:
    """A running task.

    Attributes:
        task: task of verifiers.
        toolsets: its toolsets, and those of its taskset.
        settings: those of the simulator.
        draws: its own state of shared generators.
        turns: actions so far.
    """

    task: Any
    toolsets: list[Any]
    settings: Mapping[str, Any]
    draws: GlobalDraws
    turns: int = 0
    trace: Any = field(init=False)

    def __post_init__(self) -> None:
        self._tools, self.trace = _tools(self.toolsets), _trace(self.task)

    async def act(self, action: str) -> Step[None]:
        """Call a tool, or end the episode with an answer."""
        self.turns += 1
        if not self._tools:
            return await self._answered(encodable(action), cut=False)
        call = read_call(action, {name: tool for name, (_, tool) in self._tools.items()})
        if isinstance(call, str):
            return await self._told(call or NO_CALL, valid=False)
        if call.name == ANSWER:
            return await self._answered(call.arguments[ANSWER], cut=False)
        toolset, tool = self._tools[call.name]
        method = getattr(toolset, tool.name)
        try:
            with self.draws:
                result, valid = shown(await awaited(method(**call.arguments))), True
        except Exception as error:  # noqa: BLE001 - its server would tell the model of every one
            result, valid = f"error: {error}", False
        if isinstance(toolset.state, type(self.trace.state)):
            self.trace.state = toolset.state
        told = bounded(result, self.settings["longest"])
        self._note_call(call.name, action, told)
        return await self._told(told, valid)

    def close(self) -> None:
        """Nothing is held."""

    async def _told(self, told: str, valid: bool) -> Step[None]:
        if self.turns != self.settings["steps"]:
            return Step(None, told, told, 0.0, False, False, valid=valid)
        return await self._answered("", cut=True, told=told, valid=valid)

    async def _answered(
        self, answer: str, cut: bool, told: str = "the episode is over", valid: bool = True
    ) -> Step[None]:
        from verifiers.v1.types import AssistantMessage

        self._add(AssistantMessage(content=answer), sampled=True)
        with self.draws:
            await awaited(self.task.finalize(self.trace, None))
            await awaited(self.task.score(self.trace))
        scores = [(name, number(each.value, name)) for name, each in self.trace.rewards.items() if each is not None]
        return last_step(
            told, scores, self.settings["success"], cut, valid and (bool(self._tools) or bool(answer.strip()))
        )

    def _note_call(self, name: str, action: str, told: str) -> None:
        from verifiers.v1.types import AssistantMessage, ToolCall, ToolMessage

        number = f"call-{self.turns}"
        called = ToolCall(id=number, name=name, arguments=encodable(action))
        self._add(AssistantMessage(tool_calls=[called]), sampled=True)
        self._add(ToolMessage(tool_call_id=number, content=told, name=name), sampled=False)

    def _add(self, message: Any, sampled: bool) -> None:
        _add(self.trace, message, sampled)


def _trace(task: Any) -> Any:
    """A trace with the messages of the prompt."""
    import verifiers.v1 as library
    from verifiers.v1.state import state_cls
    from verifiers.v1.trace import AgentInfo, Trace, TraceTask
    from verifiers.v1.types import SystemMessage, UserMessage

    about = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
    trace = Trace(task=about, agent=AgentInfo(config=library.AgentConfig()), state=state_cls(type(task))())
    if task.data.system_prompt:
        _add(trace, SystemMessage(content=task.data.system_prompt), sampled=False)
    prompt = task.data.prompt
    for message in [UserMessage(content=prompt)] if isinstance(prompt, str) else prompt or []:
        _add(trace, message, sampled=False)
    return trace


def _add(trace: Any, message: Any, sampled: bool) -> None:
    from verifiers.v1.graph import MessageNode

    parent = len(trace.nodes) - 1 if trace.nodes else None
    trace.nodes.append(MessageNode(parent=parent, message=message, sampled=sampled))


def _toolsets(taskset: Any, task: Any) -> list[Any]:
    return [*type(taskset).toolsets(taskset.config), *type(task).toolsets(task.config)]


def _tools(toolsets: list[Any]) -> dict[str, tuple[Any, PythonTool]]:
    """Toolset and tool by the name that verifiers advertises. Raises ``CoevoError``."""
    from verifiers.v1.utils.decorators import discover_decorated

    found: list[tuple[str, Any, PythonTool]] = []
    for each in toolsets:
        prefix = f"{each.server_name}_" if each.server_name else ""
        for method in discover_decorated(each, "tool"):
            tool = python_tool("env.taskset", f"{type(each).__name__}.{method.__name__}", method)
            name = f"{prefix}{getattr(method, 'tool_name', None) or method.__name__}"
            found.append((name, each, PythonTool(tool.name, {**tool.schema, "name": name}, tool.arguments)))
    check_names([name for name, _, _ in found])
    return {name: (each, tool) for name, each, tool in found}


def _check_playable(task: Any) -> None:
    """Check that a task needs neither a container nor a user. Raises ``CoevoError``."""
    name = type(task).__name__
    needing = [fn.__name__ for fn in task.hooks("reward") if _needs_runtime(fn)]
    if type(task).NEEDS_CONTAINER or needing:
        raise CoevoError(
            f"env.taskset: {name} needs a container ({', '.join(needing) or 'its tasks'}): play another one"
        )
    if not _prompt(task):
        raise CoevoError(f"env.taskset: a task of {name} has no prompt, since a user opens it: play another one")


def _needs_runtime(function: Any) -> bool:
    parameter = inspect.signature(function).parameters.get("runtime")
    return parameter is not None and parameter.default is inspect.Parameter.empty


def _prompt(task: Any) -> str:
    return encodable("\n\n".join(filter(None, (task.data.system_prompt, task.data.prompt_text))))
