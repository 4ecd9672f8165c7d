"""A script in a process of its own, which must end by SIGKILL.

A fork of the test's process would do, but that one may be large, and the machine small.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def killed(script, *arguments):
    """Run a script, with these arguments in ``sys.argv``, that kills itself."""
    environment = os.environ | {"PYTHONPATH": str(TESTS)}
    line = [sys.executable, "-P", "-c", script, *map(str, arguments)]
    end = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=400, check=False)
    assert end.returncode == -signal.SIGKILL, end.stderr
