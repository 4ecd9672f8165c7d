"""Episodes of tau2-bench in worker processes: calls of tools, messages to a user, and the authors' evaluation."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from coevo.envs.adapters.episode_parts import bounded, facts_or_refusal, read_json_call
from coevo.envs.base import Step
from coevo.envs.rows.endpoint_requests import CompletionsEndpoint
from coevo.envs.rows.python_tools import NO_CALL
from coevo.envs.tau2.bench_checkout import BenchCheckout, checkout
from coevo.envs.tau2.user_model import UserBudgetError, UserModel, is_end
from coevo.records.draws import Key
from coevo.records.task import Task

DONE, RESPOND = "done", "respond"
"""Tools of this adapter: the end of solo play, and a message to the user."""
ENDING: Mapping[str, Any] = {
    "name": DONE,
    "description": "End the task, once the ticket is solved or cannot be solved.",
    "parameters": {"type": "object", "properties": {}},
}
RESPONDING: Mapping[str, Any] = {
    "name": RESPOND,
    "description": "Send a message to the customer, and read the answer.",
    "parameters": {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "The message."}},
        "required": ["message"],
    },
}
GREETING = "Hi! How can I help you today?"
"""First message of the agent, which tau2-bench sends for it."""
CALCULATE = "calculate"
MAX_EXPRESSION_CHARS = 200
POWER = re.compile(r"\*\s*\*")
"""A power, whose digits may need hours."""
TOO_LONG = "an expression has at most 200 characters and no power"


@dataclass(frozen=True)
class ServiceDesk:
    """Source of episodes.

    Attributes:
        settings: ``folder``, ``domain``, ``tasks``, ``policy``, ``steps``, ``errors``, ``longest``, and ``user``, the
            values of ``UserModelConfig`` or None.
        key: API key of the user's model; empty for none.
    """

    settings: Mapping[str, Any]
    key: str = field(default="", repr=False)

    @property
    def solo(self) -> bool:
        """True if no model plays the user."""
        return self.settings["user"] is None

    def facts(self) -> Mapping[str, Any]:
        """The policy and the tools of the agent."""
        return facts_or_refusal(self._facts)

    def open(self, task: Task, key: Key) -> tuple["ServiceEpisode", str]:
        """Start a task; with a user, its first message is the observation."""
        episode = ServiceEpisode(self._checkout(), self.settings, task.data["task"], self._user(task, key))
        return episode, episode.begin()

    def _facts(self) -> Mapping[str, Any]:
        found, end = self._checkout(), ENDING if self.solo else RESPONDING
        return {"guide": found.policy(self.solo), "tools": [*_tools(found, self.solo).values(), end]}

    def _checkout(self) -> BenchCheckout:
        return checkout(*(self.settings[name] for name in ("folder", "domain", "tasks", "policy")))

    def _user(self, task: Task, key: Key) -> UserModel | None:
        user = self.settings["user"]
        if user is None:
            return None
        found = self._checkout()
        tools = [{"type": "function", "function": tool} for tool in found.user_tools.values()]
        endpoint = CompletionsEndpoint(
            "the user's model", "env.user.url", user["url"], user["seconds"], user["retries"], self.key
        )
        return UserModel(user, endpoint, found.scenario(task.data["task"]), tools, key)


class ServiceEpisode:
    """A running task.

    Args:
        found: the checkout.
        settings: those of the desk.
        task_id: id of the task.
        user: its user; None for solo play.
    """

    def __init__(self, found: BenchCheckout, settings: Mapping[str, Any], task_id: str, user: UserModel | None) -> None:
        self._checkout, self._settings, self._task, self._user = found, settings, task_id, user
        self._world = found.started(task_id, user is None)
        self._tools = _tools(found, user is None)
        self._messages: list[Any] = []
        self._turns = self._errors = 0

    def begin(self) -> str:
        """First observation."""
        if self._user is None:
            return "the ticket is open"
        self._add("Assistant", "assistant", content=GREETING)
        return bounded(self._heard(GREETING), self._settings["longest"])

    def act(self, action: str) -> Step[None]:
        """Call a tool, write to the user, or end the task; the policy reads why a call failed."""
        self._turns += 1
        call = read_json_call(action)
        if call is None:
            return self._told(NO_CALL, valid=False)
        name, arguments = call
        if name == DONE and self._user is None:
            return self._evaluated("the task is over")
        if name == RESPOND and self._user is not None:
            return self._responded(arguments.get("message"))
        if name not in self._tools:
            return self._told(f"there is no tool {name[:60]!r}", valid=False)
        if name == CALCULATE and not _is_quick(arguments):
            return self._told(f"error: {TOO_LONG}", valid=False)
        result = self._called("Assistant", f"call-{self._turns}", name, arguments)
        return self._told(result.content or "done", _fits(arguments, self._tools[name]), result.error)

    def close(self) -> None:
        """Nothing is held."""

    def _responded(self, message: Any) -> Step[None]:
        if not isinstance(message, str) or not message.strip():
            return self._told("respond takes a text, message", valid=False)
        self._add("Assistant", "assistant", content=message)
        try:
            answer = self._heard(message)
        except UserBudgetError:
            return self._cut("the user's model has used all its requests", True)
        if is_end(answer):
            return self._evaluated(f"{answer}\nthe conversation is over")
        return self._told(answer, valid=True)

    def _heard(self, message: str) -> str:
        """The user's answer, noted with the calls before it."""
        assert self._user is not None
        answer = self._user.reply(message, self._called_by_user)
        self._add("User", "user", content=answer)
        return answer

    def _called_by_user(self, number: str, name: str, arguments: Mapping[str, Any]) -> str:
        return str(self._called("User", number, name, arguments).content)

    def _called(self, kind: str, number: str, name: str, arguments: Mapping[str, Any]) -> Any:
        """Message of the tool, noted with the call."""
        role = kind.lower()
        call = self._checkout.messages.ToolCall(id=number, name=name, arguments=dict(arguments), requestor=role)
        result = self._world.get_response(call)
        self._add(kind, role, content=None, tool_calls=[call])
        self._messages.append(result)
        return result

    def _add(self, kind: str, role: str, **values: Any) -> None:
        self._messages.append(getattr(self._checkout.messages, f"{kind}Message")(role=role, **values))

    def _told(self, told: str, valid: bool, error: bool = False) -> Step[None]:
        told, self._errors = bounded(told, self._settings["longest"]), self._errors + (error or not valid)
        if self._errors >= self._settings["errors"]:
            return self._cut(f"{told}\ntoo many errors: the task is over", valid)
        if self._turns >= self._settings["steps"]:
            return self._cut(f"{told}\nthe task was not ended in time", valid)
        return Step(None, told, told, 0.0, False, False, valid=valid)

    def _cut(self, told: str, valid: bool) -> Step[None]:
        told = bounded(told, self._settings["longest"])
        return Step(None, told, told, 0.0, True, False, valid=valid, truncated=True, scores=self._cost())

    def _evaluated(self, told: str) -> Step[None]:
        parts, missed = self._checkout.rewards(self._task, self._messages, self._user is None)
        reward = 1.0
        for value in parts.values():
            reward *= value
        feedback = "\n".join((told, *dict.fromkeys(missed), f"reward {reward:g}"))
        feedback = bounded(feedback, self._settings["longest"])
        scores = tuple((name.lower(), value) for name, value in parts.items())
        return Step(None, feedback, feedback, reward, True, reward == 1, scores=(*scores, *self._cost()))

    def _cost(self) -> tuple[tuple[str, float], ...]:
        """Requests to the user's model and their tokens."""
        if self._user is None:
            return ()
        return (("user_calls", float(self._user.calls)), ("user_tokens", float(self._user.tokens)))


def _tools(found: BenchCheckout, solo: bool) -> dict[str, Mapping[str, Any]]:
    """JSON schemas of the tools that an agent has, by name."""
    return {**found.tools, **(found.user_tools if solo else {})}


def _fits(arguments: Mapping[str, Any], tool: Mapping[str, Any]) -> bool:
    """True if the names of the arguments are those of the tool; what a value means, the world decides."""
    schema = tool.get("parameters", {})
    return set(schema.get("required", ())) <= set(arguments) <= set(schema.get("properties", ()))


def _is_quick(arguments: Mapping[str, Any]) -> bool:
    """True if an expression is computed in no time."""
    text = str(arguments.get("expression", ""))
    return len(text) <= MAX_EXPRESSION_CHARS and not POWER.search(text)
