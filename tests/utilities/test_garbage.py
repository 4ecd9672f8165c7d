import subprocess
import sys

PROGRAM = """
import gc
from coevo.flows.start import main
try:
    main()
finally:
    print(gc.get_threshold())
"""


def test_a_command_collects_seldom():
    done = subprocess.run([sys.executable, "-c", PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert "Train an LLM agent" in done.stdout
    assert done.stdout.rstrip().endswith("(50000, 20, 20)")
