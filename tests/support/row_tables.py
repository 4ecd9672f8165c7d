"""Tables of tasks and their environments, for tests."""

import json

from coevo.configs.rows_config import RowsConfig
from coevo.envs.rows.rows_environment import Rows

ROWS = [{"prompt": f"what is {n} plus 1", "answer": str(n + 1), "topic": f"t{n % 3}"} for n in range(60)]


def written(folder, rows=ROWS, name="tasks.jsonl"):
    """Path of a file with these rows."""
    path = folder / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def configured(path, reward="support.row_functions:exact", **settings):
    return RowsConfig.model_validate({"path": str(path), "reward": reward, **settings})


def made(path, reward="support.row_functions:exact", **settings):
    return Rows(configured(path, reward, **settings))


def rated(name, **settings):
    """Settings of a reward."""
    return {"function": f"support.row_functions:{name}", **settings}
