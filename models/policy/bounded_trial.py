"""Trials of a chat template and a tokenizer: their first use, in a process with bounded time and memory.

Jinja's sandbox limits the objects that a template can reach, not the cost of one operation: nothing within a process
can stop ``7 ** 7 ** 9``, or ``'a' * 10 ** 10`` before the memory is gone. A tokenizer's expressions may need minutes
for one line, and its replacements may make gigabytes of it. The trials ignore errors.
"""

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from string import printable

from psutil import Process

MEMORY = 2**30
"""Maximum bytes that a template may allocate for a prompt of a few short messages."""
MAX_TOKENIZER_BYTES = 2**27
"""Maximum bytes of a ``tokenizer.json``; those of vocabularies with 260,000 words have 2^25."""
TOKENIZER_MEMORY = 2**32
TOKENIZER_TIMEOUT_S = 20.0
"""Maximum processor time for reading a tokenizer and a few pages of text; large ones need two seconds."""
SYSTEM, USER, ANSWER = ({"role": role, "content": "hello"} for role in ("system", "user", "assistant"))
WORDS = 2000
"""Number of words of a tokenizer's own that it is tried with."""
TEXTS = (
    "A quick brown fox, who jumps over 13 lazy dogs, is at the kitchen counter; it holds nothing. " * 20,
    *(character * 2000 + "~" for character in "a1 \n.é中"),
    printable * 20,
)
FULL, PANICKED = 3, 4
"""Exit statuses of a process that ran out of memory, and of one whose library gave up."""


def try_out(template: str, tokens: Mapping[str, object], seconds: float) -> str | None:
    """Render a chat template in a process of its own, once per template.

    Args:
        template: source of the template.
        tokens: special tokens of the tokenizer by their names in the template.
        seconds: limit of processor time.

    Returns:
        The fault of the template; None if it stays within the limits.
    """
    return _fault("template", json.dumps([template, json.dumps(dict(tokens), default=str)]), seconds, MEMORY)


def try_tokenizer(file: Path) -> str | None:
    """Read a ``tokenizer.json`` and encode some texts in a process of its own, once per content.

    Returns:
        The fault of the tokenizer; None if it stays within the limits, is missing, or cannot be read.
    """
    if not file.is_file():
        return None
    if file.stat().st_size > MAX_TOKENIZER_BYTES:
        return f"has {file.stat().st_size} bytes"
    content = file.read_text(encoding="utf-8", errors="replace")
    return _fault("tokenizer", content, TOKENIZER_TIMEOUT_S, TOKENIZER_MEMORY)


@lru_cache(maxsize=16)
def _fault(kind: str, given: str, seconds: float, memory: int) -> str | None:
    line = [sys.executable, "-P", __file__, kind, str(seconds), str(memory)]
    status = subprocess.run(line, input=given, capture_output=True, text=True, check=False).returncode
    faults = {
        0: None, -signal.SIGPROF: f"does not end within {seconds:g} s", FULL: f"needs more than {memory} bytes",
        -signal.SIGABRT: f"needs more than {memory} bytes, or ends its process", PANICKED: "makes its library give up",
    }  # fmt: skip
    return faults.get(status, f"ends the process that tries it, exit status {status}")


def main(kind: str, seconds: float, memory: int) -> None:
    """Try what standard input holds."""
    given = sys.stdin.read()
    try:
        (_render if kind == "template" else _encode)(given, seconds, memory)
    except MemoryError:
        sys.exit(FULL)


def _render(given: str, seconds: float, memory: int) -> None:
    """Render the template for a user message, with a system message, and for a conversation."""
    from transformers.utils.chat_template_utils import render_jinja_template

    template, tokens = json.loads(given)
    _bound(seconds, memory)
    for messages in ([USER], [SYSTEM, USER], [SYSTEM, USER, ANSWER, USER], [USER, ANSWER, USER, ANSWER, USER]):
        try:
            render_jinja_template([messages], chat_template=template, add_generation_prompt=True, **json.loads(tokens))
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  (a template may raise whatever Python can, and do so again)
            continue


def _encode(given: str, seconds: float, memory: int) -> None:
    """Encode words of the tokenizer's own and some texts, and decode them."""
    from tokenizers import Tokenizer

    _bound(seconds, memory)
    try:
        tokenizer = Tokenizer.from_str(given)
        for text in (" ".join(sorted(tokenizer.get_vocab())[:WORDS]), *TEXTS):
            tokenizer.decode(tokenizer.encode(text).ids)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (the library's own are bare; who uses the tokenizer sees them)
        return
    except BaseException:  # noqa: BLE001  (a panic of the library, as of an expression without end)
        sys.exit(PANICKED)


def _bound(seconds: float, memory: int) -> None:
    """Limit time and memory of this process; the timer's signal also ends it within an operation."""
    size = Process().memory_info().vms + memory
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_PROF, seconds)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
