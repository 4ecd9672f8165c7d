import os
from pathlib import Path

from tau2.domains.desk import opened


def get_environment(db=None, solo_mode=False):
    if solo_mode:
        raise ValueError("not solo")
    folder = Path(os.environ["TAU2_DATA_DIR"]) / "tau2" / "domains" / "retail"
    return opened(folder, ("db.json",), ("policy.md",), (), db)
