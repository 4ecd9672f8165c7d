"""Episodes of AppWorld in worker processes: each has a child of its own in AppWorld's interpreter.

The child's environment holds nothing of this process but a path, its folder is removed with it, and code that takes too
long ends with it.
"""

import json
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from coevo.configs.benchmark_config import MARGIN_S
from coevo.envs.adapters.episode_parts import LEFT_OUT, bounded
from coevo.envs.base import Step
from coevo.envs.failures import one_line
from coevo.records.draws import Key
from coevo.records.inert import encodable
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import Launch, ServerProcess

PROGRAM = Path(__file__).with_name("world_child.py")
OVERHEAD_BYTES = 2**16
"""Bytes of a reply without the output."""
BYTES_A_CHARACTER = 6
"""Most bytes of a byte of output in JSON."""
OPEN_MARGIN = 0.9
"""Share of the time for a start that the child has."""


class _ChildReply(BaseModel):
    """A reply of the child, which runs code of an agent: strict, and with no field besides these."""

    model_config = ConfigDict(strict=True, extra="forbid")

    token: str
    error: str = ""
    instruction: str = ""
    supervisor: dict[str, str] = Field(default_factory=dict)
    output: str = ""
    left_out: int = Field(default=0, ge=0)
    completed: bool = False
    success: bool = False
    met: int = Field(default=0, ge=0)
    requirements: int = Field(default=0, ge=0)
    missed: tuple[str, ...] = ()


class ChildTimeoutError(Exception):
    """The child did not reply in time; it was killed."""


@dataclass(frozen=True)
class AppWorldSimulator:
    """Source of episodes.

    Attributes:
        settings: ``python``, ``root``, ``steps``, ``action_seconds``, ``open_seconds``, ``output`` and ``longest``.
    """

    settings: Mapping[str, Any]

    def open(self, task: Task, key: Key) -> tuple["AppWorldEpisode", str]:
        """Start a world; its instruction is the observation."""
        child = WorldChild(self.settings["python"], self.settings["root"], self.settings["output"])
        seconds = self.settings["open_seconds"] * OPEN_MARGIN
        try:
            first = {"task": task.data["task"], "bound": self.settings["output"]}
            found = child.asked(first, seconds)
        except ChildTimeoutError:
            raise CoevoError(
                f"AppWorld did not start within {seconds:.0f} s: raise env.simulator.open_seconds"
            ) from None
        except BaseException:
            child.close()
            raise
        person = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.supervisor.items())
        observation = f"{found.instruction}\nyour supervisor: {person or 'unknown'}"
        return AppWorldEpisode(child, self.settings), bounded(observation, self.settings["longest"])


class WorldChild:
    """A process of AppWorld's interpreter.

    Args:
        python: the interpreter.
        root: folder whose ``data`` AppWorld reads.
        bound: most bytes of an output.

    Raises:
        CoevoError: it cannot be started.
    """

    def __init__(self, python: str, root: str, bound: int) -> None:
        self._folder, self._token = Path(mkdtemp(prefix="coevo-appworld-")), secrets.token_hex(16)
        self._most = bound * BYTES_A_CHARACTER + OVERHEAD_BYTES
        (self._folder / "data").symlink_to(Path(root) / "data")
        variables = {
            "PATH": os.defpath,
            "HOME": str(self._folder),
            "APPWORLD_ROOT": str(self._folder),
            "LANG": "C.UTF-8",
            "PYTHONHASHSEED": "0",
        }
        launch = Launch(
            [python, "-P", str(PROGRAM)], variables, Path(os.devnull), self._folder,
            leash=True, replies=True, withheld=("",),
        )  # fmt: skip
        try:
            self._process = ServerProcess(launch)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise CoevoError(f"env.python={python}: {error.strerror}: name an interpreter that has AppWorld") from None

    def asked(self, request: Mapping[str, Any], seconds: float) -> _ChildReply:
        """Reply to a request.

        Raises:
            ChildTimeoutError: there was none within ``seconds``; the child is gone.
            CoevoError: the child has ended, replied with something else, or with an error.
        """
        deadline = monotonic() + seconds
        try:
            self._process.write(json.dumps({"token": self._token, **request}).encode() + b"\n", seconds)
            line = self._process.line(max(0.0, deadline - monotonic()), self._most)
        except TimeoutError:
            line = None
        except (OSError, ValueError):
            line = b""
        if line is None:
            self.close()
            raise ChildTimeoutError
        if not line.endswith(b"\n"):
            raise CoevoError("AppWorld's process has ended")
        try:
            reply = _ChildReply.model_validate_json(line)
        except ValidationError as error:
            raise CoevoError(f"AppWorld's process sends no reply: {error.errors()[0]['msg']}") from None
        if not secrets.compare_digest(reply.token.encode(), self._token.encode()):
            raise CoevoError("AppWorld's process sends a reply that it was not asked for")
        if reply.error:
            raise CoevoError(f"AppWorld: {one_line(reply.error)}")
        return reply

    def close(self) -> None:
        """Kill the process and all that it started, and remove its folder; a second call does nothing."""
        self._process.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class AppWorldEpisode:
    """A running task.

    Args:
        child: its world.
        settings: those of the simulator.
    """

    def __init__(self, child: WorldChild, settings: Mapping[str, Any]) -> None:
        self._child, self._settings, self._turns = child, settings, 0

    def act(self, action: str) -> Step[None]:
        """Run a code block; the episode ends when the agent completes the task, or at the limit of blocks."""
        self._turns += 1
        code = encodable(action)
        if not code.strip():
            return self._told("there is no code", completed=False, valid=False)
        seconds = self._settings["action_seconds"]
        try:
            found = self._child.asked({"call": "execute", "code": code}, seconds)
        except ChildTimeoutError:
            told = f"the code took longer than {seconds:g} s: the task is over\nreward 0"
            return Step(None, told, told, 0.0, True, False, truncated=True)
        rest = LEFT_OUT.format(count=found.left_out).replace("characters", "bytes") if found.left_out else ""
        return self._told(found.output + rest, found.completed, not found.output.startswith("Execution failed"))

    def close(self) -> None:
        """End the world."""
        self._child.close()

    def _told(self, told: str, completed: bool, valid: bool) -> Step[None]:
        told, cut = bounded(told, self._settings["longest"]), not completed and self._turns >= self._settings["steps"]
        if not completed and not cut:
            return Step(None, told, told, 0.0, False, False, valid=valid)
        try:
            found = self._child.asked({"call": "evaluate"}, MARGIN_S)
        except ChildTimeoutError:
            raise CoevoError("AppWorld did not evaluate the task in time: raise env.simulator.act_seconds") from None
        success = found.success and completed
        share = found.met / max(1, found.requirements)
        lines = (told, *(f"not met: {each}" for each in found.missed), f"reward {float(success):g}")
        feedback = bounded("\n".join(lines), self._settings["longest"])
        scores = (("solved", float(success)), ("requirements_met", share))
        return Step(
            None, feedback, feedback, float(success), True, success, valid=valid, truncated=cut, progress=share,
            scores=scores,
        )  # fmt: skip
