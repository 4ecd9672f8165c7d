"""Worker processes of another Python interpreter, for simulators whose packages conflict with coevo's.

That interpreter needs numpy and pydantic. It gets the modules of coevo and the user's folders, and none of the packages
that are installed here.
"""

import json
import os
import pickle
import subprocess
import sys
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from socket import socket
from sysconfig import get_paths
from typing import Any

PACKAGE = Path(__file__).parents[2]
"""Folder of the package coevo."""


class InterpreterProcess:
    """A worker process of another interpreter.

    Args:
        python: path of the interpreter.
        simulator: the pickled simulator.
        connection: the worker's end of the connection.

    Raises:
        OSError: the interpreter cannot be started.
    """

    def __init__(self, python: str, simulator: bytes, connection: socket) -> None:
        variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
        number = connection.fileno()
        command = [python, __file__, str(PACKAGE), str(number), str(os.getpid()), json.dumps(_folders())]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[number],
            env=variables | {"PYTHONHASHSEED": "0"},
        )
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # whoever asks it finds that it has ended
            self._process.stdin.write(simulator)
        with suppress(BrokenPipeError):
            self._process.stdin.close()

    @property
    def exitcode(self) -> int | None:
        """Exit code; None while it runs."""
        return self._process.poll()

    def join(self, timeout: float) -> None:
        """Wait for its end, ``timeout`` seconds at most."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        self._process.kill()


def _folders() -> list[str]:
    """Folders that modules of the user's own are imported from."""
    paths = get_paths()
    installed = tuple(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    found = (str(Path(each).absolute()) for each in sys.path if not each.endswith(".zip"))
    return [each for each in found if not each.startswith(installed) and Path(each) != PACKAGE.parent]


def _simulator(pickled: bytes, folders: list[str]) -> Any:
    """The simulator, with the user's folders behind what is installed here."""
    sys.path.extend(folders)
    import coevo.envs.stateful.simulator_worker

    assert coevo.envs.stateful.simulator_worker
    return pickle.loads(pickled)


def _import_coevo(package: str) -> None:
    """Make ``coevo`` importable without its neighbours in site-packages."""
    spec = spec_from_file_location("coevo", f"{package}/__init__.py", submodule_search_locations=[package])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["coevo"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["coevo"])


def _refuse(connection: socket, reason: str) -> None:
    """Answer each request with why there is no simulator."""
    with suppress(ConnectionError), connection.makefile("rb") as requests:
        for _ in requests:
            connection.sendall(json.dumps({"error": reason}).encode() + b"\n")


def main() -> None:
    """Serve the simulator of the standard input over a connection."""
    package, number, owner, folders = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - the folder, as Python names it
    sys.path[:] = [each for each in sys.path if each != here]
    connection, pickled = socket(fileno=int(number)), sys.stdin.buffer.read()
    try:
        _import_coevo(package)
        from coevo.utilities.process_guard import guarded

        guarded(int(number), int(owner))
        simulator = _simulator(pickled, json.loads(folders))
    except Exception as error:  # noqa: BLE001 - an interpreter of somebody else may lack anything
        text = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        _refuse(
            connection, f"env.python={sys.executable}: {text}: it needs numpy, pydantic and the environment's package"
        )
        return
    from coevo.envs.stateful.simulator_worker import answer_requests

    answer_requests(simulator, connection)
    os._exit(0)  # threads of a package would keep it


if __name__ == "__main__":
    main()
