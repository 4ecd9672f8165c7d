"""The trainer child: ``python -m models.trainer.child`` answers JSON lines, one request and one reply at a time.

The first line holds the arguments of ``Session``; each further one is ``{"method": …, **arguments}``. Replies are
``{"result": …}`` or, before the child exits, ``{"error": …}``. Tensors and tables travel as files, and whatever
libraries print goes to standard error.
"""

import json
import logging
import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter
from typing import Any, TextIO

from configs.errors import CoevoError
from configs.faults import fault

log = logging.getLogger("coevo.trainer")


def main() -> None:
    """Serve on standard input and output until the parent is gone."""
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    log.setLevel(logging.INFO)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    requests: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    try:
        _serve(requests, replies)
    except CoevoError as error:
        _reply(replies, {"error": str(error)})
        sys.exit(1)
    except Exception as error:
        _reply(replies, {"error": fault(error) or f"the trainer failed: {type(error).__name__}: {_line(error)}"})
        raise


def _serve(requests: SimpleQueue[str], replies: TextIO) -> None:
    started = perf_counter()
    sys.modules["mlflow"] = None  # type: ignore[assignment]  # DeepSpeed's autotuner would import it, a second for nothing
    from models.trainer.session import Session  # takes seconds, in which the parent may already be gone

    session = Session(**json.loads(requests.get()))
    log.info("ready after %.1f s", perf_counter() - started)
    _reply(replies, {"result": None})
    while True:
        request: dict[str, Any] = json.loads(requests.get())
        method: Callable[..., Any] = getattr(session, request.pop("method"))
        _reply(replies, {"result": method(**request)})


def _listen(requests: SimpleQueue[str]) -> None:
    """Pass requests on; the input ends with the parent, even by kill -9 and in the middle of an update."""
    for line in sys.stdin:
        requests.put(line)
    os._exit(0)


def _reply(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
