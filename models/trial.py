"""A first rendering of a stranger's chat template, in a process of its own.

Jinja's sandbox bounds what a template reaches, not what one operation of it takes: nothing within a process can stop
``7 ** 7 ** 9``, or ``'a' * 10 ** 10`` before the memory is gone. Errors of a template are not looked at here.
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
"""Bytes that a template may take for a prompt of two short messages."""
SYSTEM, USER = ({"role": role, "content": "hello"} for role in ("system", "user"))
FULL = 3
"""Exit status of a process that got no more memory."""


def try_out(template: str, tokens: Mapping[str, object], seconds: float) -> str | None:
    """What is wrong with a chat template; None where it keeps within its bounds.

    Args:
        template: its source.
        tokens: special tokens of its tokenizer, by their names in the template.
        seconds: longest processor time of its rendering.
    """
    return _fault(template, json.dumps(dict(tokens), default=str), seconds)


@lru_cache(maxsize=64)
def _fault(template: str, tokens: str, seconds: float) -> str | None:
    given = json.dumps([template, json.loads(tokens), seconds])
    line = [sys.executable, "-P", __file__]
    status = subprocess.run(line, input=given, capture_output=True, text=True, check=False).returncode
    faults = {0: None, -signal.SIGPROF: f"does not end within {seconds:g} s", FULL: f"needs more than {MEMORY} bytes"}
    return faults.get(status, f"ends the process that renders it, exit status {status}")


def main() -> None:
    """Render the template that standard input names, for a user's message and after a system's."""
    from transformers.utils.chat_template_utils import render_jinja_template

    template, tokens, seconds = json.load(sys.stdin)
    _bound(seconds)
    for messages in ([USER], [SYSTEM, USER]):
        try:
            render_jinja_template([messages], chat_template=template, add_generation_prompt=True, **tokens)
        except MemoryError:
            sys.exit(FULL)
        except Exception:  # noqa: BLE001  (a template may raise whatever Python can, and do so again)
            continue


def _bound(seconds: float) -> None:
    """Bound this process from now on; the timer's signal ends it within an operation, too."""
    size = Process().memory_info().vms + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main()
