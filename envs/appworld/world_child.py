"""The program in AppWorld's interpreter: one world, and the code that an agent writes. It knows nothing of coevo.

A request is a line of JSON on its standard input, a reply a line on its standard output. Both streams are moved away
before a world is loaded, so that code which writes to them reaches nobody; a reply without the token of the first line
is refused.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

MAX_REQUIREMENT_CHARS = 300
MAX_REQUIREMENTS = 8
MAX_FILE_BYTES = 2**30
"""Largest file that the child writes."""


class World:
    """A task of AppWorld.

    Args:
        task_id: id of the task.
        bound: most bytes of an output.
    """

    def __init__(self, task_id: str, bound: int) -> None:
        from appworld import AppWorld

        self._world, self._bound = AppWorld(task_id=task_id, experiment_name="coevo"), bound

    def opened(self) -> dict[str, Any]:
        """The instruction, and who gives it."""
        person = getattr(self._world.task, "supervisor", None)
        parts = {name: getattr(person, name, None) for name in ("first_name", "last_name", "email", "phone_number")}
        return {
            "instruction": str(self._world.task.instruction),
            "supervisor": {name: str(value) for name, value in parts.items() if value},
        }

    def execute(self, code: str) -> dict[str, Any]:
        """Output of a code block, cut to its bound, and whether the agent has completed the task."""
        told = str(self._world.execute(code)).encode(errors="replace")
        rest = max(0, len(told) - self._bound)
        text = told[: self._bound].decode(errors="replace")
        return {"output": text, "left_out": rest, "completed": bool(self._world.task_completed())}

    def evaluate(self) -> dict[str, Any]:
        """Requirements that are met, and texts of those that are not."""
        tracker = self._world.evaluate()
        failures = [str(each.get("requirement", ""))[:MAX_REQUIREMENT_CHARS] for each in tracker.failures]
        return {
            "success": bool(tracker.success),
            "met": int(tracker.pass_count),
            "requirements": int(tracker.num_tests),
            "missed": failures[:MAX_REQUIREMENTS],
        }


def main() -> None:
    """Answer requests until their end."""
    requests, replies = _moved(0, os.O_RDONLY), _moved(1, os.O_WRONLY)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    first = json.loads(requests.readline())
    token = first["token"]
    try:
        world = World(first["task"], first["bound"])
        _reply(replies, token, world.opened())
    except BaseException as error:  # noqa: BLE001 - a package of somebody else may raise anything
        _reply(replies, token, {"error": _told(error)})
        return
    calls: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
        "execute": lambda request: world.execute(request["code"]),
        "evaluate": lambda request: world.evaluate(),
    }
    for line in requests:
        request = json.loads(line)
        try:
            _reply(replies, token, calls[request["call"]](request))
        except BaseException as error:  # noqa: BLE001 - the same, and SystemExit of an agent's code
            _reply(replies, token, {"error": _told(error)})


def _moved(number: int, flags: int) -> BinaryIO:
    """A standard stream under another number; nothing stands in its place."""
    kept = os.dup(number)
    os.dup2(os.open(os.devnull, flags), number)
    return os.fdopen(kept, "rb" if flags == os.O_RDONLY else "wb", buffering=-1)


def _reply(replies: BinaryIO, token: str, values: Mapping[str, Any]) -> None:
    replies.write(json.dumps({"token": token, **values}).encode() + b"\n")
    replies.flush()


def _told(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]


if __name__ == "__main__":
    sys.path[:] = [each for each in sys.path if each]
    main()
    os._exit(0)  # threads of a package would keep it
