"""A trainer's process that a fault strikes; ``fault_at`` puts it in place of the trainer's own module."""

import json
import os
import runpy
import sys
from pathlib import Path

NAME = "STRUCK_TRAINER"
"""Environment variable with a fault and its place, as JSON."""

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[1])]
    from support.fault_at import happen_at

    happen_at(*json.loads(os.environ.pop(NAME)))
    runpy.run_module("coevo.models.trainer.child", run_name="__main__", alter_sys=True)
