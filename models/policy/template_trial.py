"""Trial of a chat template: its first rendering, in a process with bounded time and memory.

Jinja's sandbox limits the objects that a template can reach, not the cost of one operation: nothing within a process
can stop ``7 ** 7 ** 9``, or ``'a' * 10 ** 10`` before the memory is gone. The trial ignores errors of the template.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache

from psutil import Process

MEMORY = 2**30
"""Maximum bytes that a template may allocate for a prompt of a few short messages."""
SYSTEM, USER, ANSWER = ({"role": role, "content": "hello"} for role in ("system", "user", "assistant"))
FULL = 3
"""Exit status of a process that ran out of memory."""


def try_out(template: str, tokens: Mapping[str, object], seconds: float) -> str | None:
    """Render a chat template in a process of its own, once per template.

    Args:
        template: source of the template.
        tokens: special tokens of the tokenizer by their names in the template.
        seconds: limit of processor time.

    Returns:
        The fault of the template; None if it stays within the limits.
    """
    return _fault(template, json.dumps(dict(tokens), default=str), seconds)


@lru_cache(maxsize=64)
def _fault(template: str, tokens: str, seconds: float) -> str | None:
    given = json.dumps([template, tokens, seconds])
    line = [sys.executable, "-P", __file__]
    status = subprocess.run(line, input=given, capture_output=True, text=True, check=False).returncode
    faults = {0: None, -signal.SIGPROF: f"does not end within {seconds:g} s", FULL: f"needs more than {MEMORY} bytes"}
    return faults.get(status, f"ends the process that renders it, exit status {status}")


def main() -> None:
    """Render the template from standard input for a user message, with a system message, and for a conversation."""
    from transformers.utils.chat_template_utils import render_jinja_template

    template, tokens, seconds = json.load(sys.stdin)
    _bound(seconds)
    for messages in ([USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, USER], [USER, ANSWER, USER, ANSWER, USER]):
        try:
            render_jinja_template([messages], chat_template=template, add_generation_prompt=True, **json.loads(tokens))
        except MemoryError:
            sys.exit(FULL)
        except Exception:  # noqa: BLE001  (a template may raise whatever Python can, and do so again)
            continue


def _bound(seconds: float) -> None:
    """Limit time and memory of this process; the timer's signal also ends it within an operation."""
    size = Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main()
