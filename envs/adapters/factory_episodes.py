"""Episodes of classes with TRL's protocol of environments, in worker processes.

``reset(**row)`` starts an episode, and its text is the first observation. Public methods are tools, ``get_reward`` and
TRL's reward functions reward the episode once it is over. The policy ends it with the tool ``answer``.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from coevo.envs.rows.python_tools import ANSWER, ANSWERING, PythonTool, ToolCall, check_names, python_tool, read_call
from coevo.records.draws import Key, seed_of
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

OWN = ("reset", "get_reward")
"""Methods of the protocol, which are no tools."""
GUIDE = f"Call tools as you need them, then end the task with {ANSWER}."


@dataclass(frozen=True)
class FactorySimulator:
    """Source of episodes.

    Attributes:
        settings: ``factory``, ``options``, ``reward``, ``done``, ``steps`` and ``success`` of ``FactoryConfig``, and
            ``longest`` of its simulator.
    """

    settings: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        """The tools, from an instance that is not used otherwise."""
        return facts_or_refusal(self._facts)

    async def open(self, task: Task, key: Key) -> tuple["FactoryEpisode", str]:
        """Make an instance and reset it with the task's row, or with its seed."""
        draws = GlobalDraws(seed_of(key))
        with draws:
            instance = self._made()
            row = task.data.get("row") or _accepted(instance, {"seed": task.data.get("seed")})
            first = await awaited(instance.reset(**row))
        episode = FactoryEpisode(instance, self.settings, draws, row)
        return episode, episode.begin(task.instruction, first)

    def _facts(self) -> Mapping[str, Any]:
        tools = tools_of(self._made(), self.settings["factory"])
        return {"guide": GUIDE, "tools": [*(tool.schema for tool in tools.values()), ANSWERING]}

    def _made(self) -> Any:
        reference, options = self.settings["factory"], self.settings["options"]
        try:
            instance = imported("env.factory", reference)(**options)
        except CoevoError:
            raise
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
            raise CoevoError(f"env.factory = {reference!r}: calling it with {options} raises {said}") from error
        if not callable(getattr(instance, "reset", None)):
            raise CoevoError(f"env.factory = {reference!r}: a {type(instance).__name__} has no reset: write one")
        return instance


@dataclass
class FactoryEpisode:
    """A running episode.

    Attributes:
        instance: the user's object.
        settings: those of the simulator.
        draws: its own state of shared generators.
        row: arguments of its ``reset``.
        said: messages so far, as TRL's reward functions get them.
    """

    instance: Any
    settings: Mapping[str, Any]
    draws: GlobalDraws
    row: Mapping[str, Any]
    said: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    prompt: str = ""

    def __post_init__(self) -> None:
        self._tools = tools_of(self.instance, self.settings["factory"])
        self._longest = self.settings["longest"]

    def begin(self, instruction: str, first: Any) -> str:
        """First observation: what ``reset`` returned."""
        observation = bounded(_first(first), self._longest)
        self.prompt = f"{instruction}\n{observation}"
        return observation

    async def act(self, action: str) -> Step[None]:
        """Call a tool, or end the episode with an answer; the policy reads why a call failed."""
        self.turns += 1
        call = read_call(action, self._tools)
        if isinstance(call, str):
            return await self._step(call, valid=False)
        if call.name == ANSWER:
            self.said.append({"role": "assistant", "content": call.arguments[ANSWER]})
            return await self._step("the episode is over", ended=True)
        try:
            with self.draws:
                result, valid = shown(await awaited(getattr(self.instance, call.name)(**call.arguments))), True
        except Exception as error:  # noqa: BLE001 - the protocol tells the policy of every one
            result, valid = f"error: {error}", False
        told = bounded(result, self._longest)
        self._note(call, told)
        return await self._step(told, valid=valid, ended=self._is_over())

    def close(self) -> None:
        """Call the instance's ``_close``, if it has one: public methods are tools."""
        close = getattr(self.instance, "_close", None)
        if callable(close):
            close()

    def _is_over(self) -> bool:
        return getattr(self.instance, self.settings["done"], False) is True

    async def _step(self, told: str, valid: bool = True, ended: bool = False) -> Step[None]:
        """A step, with the episode's reward where it is the last one."""
        cut = not ended and self.turns >= self.settings["steps"]
        if not ended and not cut:
            return Step(None, told, told, 0.0, False, False, valid=valid)
        return last_step(told, await self._scores(), self.settings["success"], cut, valid)

    async def _scores(self) -> tuple[tuple[str, float], ...]:
        """Values of ``get_reward`` and of each reward function; one that returns None does not apply."""
        found: dict[str, Any] = {}
        with self.draws:
            if inspect.isfunction(getattr(type(self.instance), "get_reward", None)):
                found["get_reward"] = await awaited(self.instance.get_reward())
            for reference in self.settings["reward"]:
                (found[reference.partition(":")[2]],) = await awaited(self._judged(imported("env.reward", reference)))
        return tuple((name, number(value, name)) for name, value in found.items() if value is not None)

    def _judged(self, function: Callable[..., Any]) -> Any:
        columns = {name: [value] for name, value in self.row.items() if name != "prompt"}
        asked = [[{"role": "user", "content": self.prompt}]]
        return function(prompts=asked, completions=[self.said], environments=[self.instance], **columns)

    def _note(self, call: ToolCall, result: str) -> None:
        called = {"name": call.name, "arguments": dict(call.arguments)}
        self.said.append({"role": "assistant", "tool_calls": [{"type": "function", "function": called}]})
        self.said.append({"role": "tool", "name": call.name, "content": result})


def tools_of(instance: Any, reference: str) -> Mapping[str, PythonTool]:
    """Tools of an instance by name: its public methods, without those of the protocol.

    Raises:
        ConfigError: a method cannot be a tool.
    """
    methods = inspect.getmembers(type(instance), predicate=inspect.isfunction)
    names = [name for name, _ in methods if name not in OWN and not name.startswith("_")]
    check_names(names)
    return {name: python_tool("env.factory", f"{reference}.{name}", getattr(instance, name)) for name in names}


def _accepted(instance: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Arguments that ``reset`` takes."""
    parameters = inspect.signature(instance.reset).parameters.values()
    anything = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = {each.name for each in parameters}
    return {name: value for name, value in arguments.items() if anything or name in named}


def _first(found: Any) -> str:
    """Result of ``reset`` as text. Raises ``CoevoError`` for anything else."""
    if isinstance(found, list) and all(
        isinstance(each, Mapping) and isinstance(each.get("text"), str) for each in found
    ):
        found = "\n".join(each["text"] for each in found)
    if found is not None and not isinstance(found, str):
        raise CoevoError(f"reset returned {found!r:.60}: it returns a text or None")
    return found or OPEN
