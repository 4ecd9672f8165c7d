"""The trainer child: ``python -m coevo.models.trainer.child`` answers JSON lines, one request and one reply at a time.

The first line holds the arguments of ``TrainingSession``; each further one is ``{"method": …, **arguments}``. Replies
are ``{"result": …}`` or, before the child exits, ``{"error": …}``. Tensors and tables travel as files, and the output
of libraries goes to standard error.

With a directory as its argument, it is one of several processes, which meet there. Process 0 gets the parent's requests
and passes them on; all do the work. With an address instead, they are on a cluster: process 0 listens at the address
and writes at which port, which is the first line that the others read.
"""

import json
import logging
import os
import select
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from time import perf_counter
from typing import Any, TextIO

from coevo.utilities.errors import CoevoError
from coevo.utilities.garbage import collect_seldom
from coevo.utilities.system_faults import fault

log = logging.getLogger("coevo.trainer")

FULL = ("DefaultCPUAllocator", "std::bad_alloc", "Cannot allocate memory")
"""Messages of torch and the system when CPU memory runs out, in errors without a class of their own."""
SAID = 160
"""Maximum characters of a library's own message."""


def main() -> None:
    """Serve on standard input and output until the parent is gone."""
    collect_seldom()
    logging.basicConfig(format="%(asctime)s %(name)s %(message)s")
    log.setLevel(logging.INFO)
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    number = int(os.environ["RANK"]) if given else 0
    meeting = Path(given) if given.startswith("/") else None
    address = "" if meeting else given
    requests: SimpleQueue[str] = SimpleQueue()
    if number == 0:
        threading.Thread(target=_listen, args=(requests, meeting), daemon=True).start()
    else:
        address = sys.stdin.readline().strip() if address else ""
        threading.Thread(target=_watch, daemon=True).start()
    try:
        _serve(requests if number == 0 else None, replies, meeting, address)
    except Exception as error:
        if given:
            log.exception("process %d failed", number)
        if given and _alone(error):
            time.sleep(60)  # the parent will have found the failed process
            os._exit(1)
        _reply(replies, {"error": str(error) if isinstance(error, CoevoError) else _words(error)})
        if given:
            os._exit(1)
        if isinstance(error, CoevoError):
            sys.exit(1)
        raise


def _serve(requests: SimpleQueue[str] | None, replies: TextIO, meeting: Path | None, address: str) -> None:
    """Handle requests: process 0 gets them from the parent, the others from process 0, which alone answers."""
    started = perf_counter()
    sys.modules["mlflow"] = None  # type: ignore[assignment]  # DeepSpeed's autotuner would import it, for a second
    from coevo.models.trainer import ranks  # takes seconds, in which the parent may already be gone
    from coevo.models.trainer.training_session import TrainingSession

    if address:
        ranks.join_at(address, lambda port: print(f"{address}:{port}", file=replies, flush=True))
    else:
        ranks.join(None if meeting is None else meeting / "store")

    def heard() -> dict[str, Any]:
        return json.loads(ranks.shared(requests.get() if requests else None))  # type: ignore[no-any-return]

    def answer(result: object) -> None:
        if requests is not None:
            _reply(replies, {"result": result})

    session = TrainingSession(**heard())
    ranks.make_room()
    log.info("ready after %.1f s", perf_counter() - started)
    answer(None)
    while True:
        request = heard()
        method: Callable[..., Any] = getattr(session, request.pop("method"))
        result = method(**request)
        ranks.make_room()
        answer(result)


def _listen(requests: SimpleQueue[str], meeting: Path | None) -> None:
    """Pass requests on; the input ends with the parent, even by kill -9 and in the middle of an update."""
    for line in sys.stdin:
        requests.put(line)
    if meeting is not None:
        shutil.rmtree(meeting, ignore_errors=True)
    os._exit(0)


def _watch() -> None:
    """End with the parent, which holds the other end of the input; only process 0 reads it."""
    waiting = select.poll()
    waiting.register(sys.stdin.fileno(), select.POLLRDHUP)
    waiting.poll()
    os._exit(0)


def _alone(error: Exception) -> bool:
    """True if a process has lost another one, which reports the cause itself."""
    return type(error).__name__ in {"DistBackendError", "DistNetworkError", "DistStoreError"} or "gloo" in str(error)


def _words(error: Exception) -> str:
    if _starved(error):
        return (
            f"the trainer has run out of memory ({_line(error)[:SAID]}): lower update.deepspeed.tokens, or see "
            "`coevo run RECIPE --dry-run`; what is committed is safe, `coevo resume` continues from it"
        )
    return fault(error) or f"the trainer failed: {type(error).__name__}: {_line(error)}"


def _starved(error: Exception) -> bool:
    """True if memory ran out, the machine's or a GPU's."""
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(said in str(error) for said in FULL)


def _reply(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
