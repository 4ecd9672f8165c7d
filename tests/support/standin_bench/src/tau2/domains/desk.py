"""Parts that the domains of the stand-in share: databases of lines, tools of a desk, and tools of a device."""

import json
import os
import tomllib
from pathlib import Path
from types import SimpleNamespace

from tau2.data_model.message import ToolMessage


class Kit:
    def __init__(self, db, tools):
        self.db, self._tools = db, {each.__name__: each for each in tools}

    def get_tools(self):
        return dict(self._tools)


def _tool(function):
    names = [name for name in function.__annotations__ if name != "return"]
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": names}
    about = {"name": function.__name__, "description": function.__doc__, "parameters": schema}
    return SimpleNamespace(name=function.__name__, openai_schema={"type": "function", "function": about})


class Desk:
    """A world: lines that the desk opens or closes, and a device that is restarted."""

    def __init__(self, policy, db, user_db):
        self.db, self.device, self.policy, self.solo_mode = db, user_db, policy, False
        self.tools = Kit(db, [self.open_line, self.show_line, self.calculate])
        self.user_tools = None if user_db is None else Kit(user_db, [self.restart, self.show_device])

    def open_line(self, number: str):
        """Open a line."""
        if number == "the plug":
            os._exit(9)
        self.db["lines"][number]["open"] = True
        return "the line is open"

    def show_line(self, number: str):
        """Show a line."""
        return json.dumps(self.db["lines"][number])

    def calculate(self, expression: str):
        """Compute an expression."""
        return str(eval(expression, {"__builtins__": {}}))

    def restart(self):
        """Restart the device."""
        self.device["restarts"] += 1
        return "the device is on"

    def show_device(self):
        """Show the device."""
        return json.dumps(self.device)

    def get_policy(self):
        return self.policy

    def get_tools(self):
        return [_tool(each) for each in self.tools.get_tools().values()]

    def get_user_tools(self):
        return [_tool(each) for each in self.user_tools.get_tools().values()]

    def set_state(self, initialization_data, initialization_actions, message_history):
        for action in initialization_actions or ():
            getattr(self, action["func_name"])(**action["arguments"])
        for message in message_history:
            for call in getattr(message, "tool_calls", None) or ():
                self.get_response(call)

    def is_open(self, number):
        return self.db["lines"][number]["open"]

    def is_restarted(self):
        return self.device["restarts"] > 0

    def get_response(self, call):
        kits = [self.tools] if call.requestor == "assistant" else [self.user_tools]
        kits += [self.user_tools] if self.solo_mode and self.user_tools else []
        try:
            found = next(kit.get_tools()[call.name] for kit in kits if call.name in kit.get_tools())
            content, error = found(**call.arguments), False
        except Exception as problem:  # noqa: BLE001
            content, error = f"Error: {problem!r}", True
        return ToolMessage(id=call.id, content=content, requestor=call.requestor, error=error)


def opened(folder, names, policies, tags, db=None, user_db=None):
    """A world with its policy, and with databases of files where none is given."""
    found = [db, user_db]
    for index, name in enumerate(names):
        if found[index] is None:
            text = (Path(folder) / name).read_text()
            found[index] = tomllib.loads(text) if name.endswith("toml") else json.loads(text)
    texts = [(Path(folder) / name).read_text() for name in policies]
    joined = (
        "\n".join(f"<{tag}>\n{text}\n</{tag}>" for tag, text in zip(tags, texts, strict=True)) if tags else texts[0]
    )
    return Desk(joined, *found)
