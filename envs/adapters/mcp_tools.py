"""Tools of an MCP server as actions: a row, calls, and an answer that functions reward. Each episode is a session."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coevo.envs.adapters.episode_parts import (
    OPEN,
    awaited,
    bounded,
    facts_or_refusal,
    imported,
    last_step,
    number,
    read_json_call,
)
from coevo.envs.adapters.mcp_client import CallError, HttpTransport, McpClient, McpTool, ProcessTransport
from coevo.envs.base import Step
from coevo.envs.rows.python_tools import ANSWER, ANSWERING, NO_CALL
from coevo.records.draws import Key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

GUIDE = f"Call tools as you need them, then end the task with {ANSWER}."


@dataclass(frozen=True)
class McpSimulator:
    """Source of sessions.

    Attributes:
        settings: ``command``, ``url``, ``tools``, ``reward``, ``steps`` and ``success`` of ``McpConfig``, and
            ``longest`` of its simulator.
        token: bearer token for ``url``; empty for none.
    """

    settings: Mapping[str, Any]
    token: str = field(default="", repr=False)

    def facts(self) -> Mapping[str, Any]:
        """The tools of the server."""
        return facts_or_refusal(self._facts)

    def open(self, task: Task, key: Key) -> tuple["McpEpisode", str]:
        """Start a session for a row."""
        client = self._client()
        names = frozenset(tool.name for tool in self._offered(client))
        return McpEpisode(client, self.settings, names, task.data["row"]), OPEN

    def _facts(self) -> Mapping[str, Any]:
        for reference in self.settings["reward"]:
            imported("env.reward", reference)
        client = self._client()
        tools = [tool.schema_of_function for tool in self._offered(client)]
        client.close()
        return {"guide": GUIDE, "tools": [*tools, ANSWERING]}

    def _client(self) -> McpClient:
        if self.settings["url"] is None:
            return McpClient(ProcessTransport(self.settings["command"]))
        return McpClient(HttpTransport(self.settings["url"], self.token))

    def _offered(self, client: McpClient) -> list[McpTool]:
        tools, wanted = client.tools(), self.settings["tools"]
        names = [tool.name for tool in tools]
        missing = next((name for name in wanted if name not in names), None)
        if missing is not None:
            raise CoevoError(f"env.tools: the MCP server has no {missing!r}; it has {', '.join(names)[:300]}")
        if ANSWER in names:
            raise CoevoError(f"env.tools: the MCP server has a tool {ANSWER!r}, which ends a task: list the others")
        return [tool for tool in tools if not wanted or tool.name in wanted]


@dataclass
class McpEpisode:
    """A session.

    Attributes:
        client: its client.
        settings: those of the simulator.
        names: tools that are offered.
        row: row of the task.
        turns: calls so far.
    """

    client: McpClient
    settings: Mapping[str, Any]
    names: frozenset[str]
    row: Mapping[str, Any]
    turns: int = 0

    async def act(self, action: str) -> Step[None]:
        """Call a tool, or end the episode with an answer; the policy reads why a call failed."""
        self.turns += 1
        call = read_json_call(action)
        if call is None:
            return await self._told(NO_CALL, valid=False)
        name, arguments = call
        if name == ANSWER and isinstance(arguments.get(ANSWER), str):
            scores = await self._scores(arguments[ANSWER])
            return last_step("the episode is over", scores, self.settings["success"], cut=False, valid=True)
        if name not in self.names:
            names = ", ".join((*sorted(self.names), ANSWER))
            return await self._told(f"there is no such tool with these arguments; there are {names}", valid=False)
        try:
            result = self.client.call(name, arguments)
        except CallError as error:
            return await self._told(f"error: {error}", valid=False)
        return await self._told(result.text, valid=not result.isError)

    def close(self) -> None:
        """End the session."""
        self.client.close()

    async def _told(self, result: str, valid: bool) -> Step[None]:
        told = bounded(result, self.settings["longest"])
        if self.turns < self.settings["steps"]:
            return Step(None, told, told, 0.0, False, False, valid=valid)
        return last_step(told, await self._scores(""), self.settings["success"], cut=True, valid=valid)

    async def _scores(self, answer: str) -> list[tuple[str, float]]:
        found = []
        for reference in self.settings["reward"]:
            value = await awaited(imported("env.reward", reference)(answer, dict(self.row)))
            found.append((reference.partition(":")[2], number(value, reference)))
        return found
