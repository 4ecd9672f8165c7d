"""Tables of tasks from Python: rows, reward functions and tools become the settings of an environment.

A run is more than one process, and continues in others: rows are kept in a file, and functions by their names. So a
function must stand in a module that other processes can import.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from sysconfig import get_path
from typing import Any

from pydantic import ValidationError

from coevo.configs.adapter_config import AdapterConfig
from coevo.configs.load.load import mistakes
from coevo.configs.rows_config import RowsConfig
from coevo.flows.console.options import workspace_of
from coevo.utilities.errors import CoevoError, ConfigError

Reward = str | Callable[..., Any] | Mapping[str, Any]
"""A reward: a function, its ``package.module:function``, or settings with ``function`` or ``url``."""
TABLES = "tables"
"""Folder of a workspace with the tables that were given as rows."""
INSTALLED = tuple(get_path(name) for name in ("stdlib", "purelib", "platlib"))


@dataclass(frozen=True)
class GivenEnvironment:
    """An environment that was made in Python, for ``coevo.run(..., env=...)``.

    Attributes:
        config: its settings.
        python_path: folders of the modules of its functions.
    """

    config: RowsConfig | AdapterConfig
    python_path: tuple[str, ...]

    def settings(self) -> dict[str, object]:
        """Settings of a run by key; its panels are its own, whatever the recipe evaluates on."""
        path = {"python_path": list(self.python_path)} if self.python_path else {}
        panels: dict[str, object] = {"evaluation.panels": [], "evaluation.final_panels": []}
        return {"env": self.config.model_dump(mode="json"), **panels, **path}


def from_rows(
    rows: "str | Path | Iterable[Mapping[str, Any]]",
    reward: Reward | Sequence[Reward],
    *,
    tools: Sequence[str | Callable[..., Any]] = (),
    workspace: Path | str | None = None,
    **settings: Any,
) -> GivenEnvironment:
    """Make an environment of a table of tasks and what rewards an answer.

    Args:
        rows: path of a table, rows as mappings, or a ``Dataset`` or ``DatasetDict`` of the package ``datasets``. Rows
            that are no file are kept in the workspace, under the hash of their content.
        reward: function ``f(answer, row)`` that returns a number from 0 to 1, ``"package.module:function"``, settings
            such as ``{"function": f, "weight": 0.5}``, or a list of these.
        tools: functions that the policy may call, with type hints and docstrings.
        workspace: directory of runs.
        settings: further settings of ``env.type=rows``, such as ``prompt``, ``split`` and ``answer``.

    Returns:
        Environment for ``coevo.run(..., env=...)``.

    Raises:
        CoevoError: the rows are no table, a setting is not valid, or other processes cannot import a function.
    """
    every = reward if isinstance(reward, list | tuple) else [reward]
    named = [_reward(each) for each in every]
    called = [reference_of(each) for each in tools]
    given = {"type": "rows", "reward": named, "tools": tuple(called), **settings}
    if not isinstance(rows, str | Path):
        rows, given = stored(rows, given, workspace)
    try:
        config = RowsConfig.model_validate({**given, "path": str(rows)})
    except ValidationError as error:
        raise ConfigError(f"from_rows: {mistakes(error, RowsConfig)}") from None
    functions = [each.get("function") if isinstance(each, Mapping) else each for each in every]
    return GivenEnvironment(config, folders_of(*functions, *tools))


def stored(
    rows: Iterable[Mapping[str, Any]], given: Mapping[str, Any], workspace: Path | str | None
) -> tuple[Path, dict[str, Any]]:
    """Write rows to the workspace; return their file, and the settings with the split column of a ``DatasetDict``."""
    from coevo.envs.rows.task_table import canonical, table_of
    from coevo.lineage.atomic_files import write_atomically

    settings = dict(given)
    parts = rows.values() if isinstance(rows, Mapping) else (rows,)
    wrong = next((part for part in parts if not isinstance(part, Iterable)), None)
    if wrong is not None:
        raise CoevoError(f"from_rows: {type(wrong).__name__} is no table: give a path, or one mapping per row")
    if isinstance(rows, Mapping):  # a DatasetDict
        settings.setdefault("split", "split")
        every = ((name, row) for name, part in rows.items() for row in part)
        rows = [{"split": name, **row} if isinstance(row, Mapping) else row for name, row in every]
    table = table_of(rows, "from_rows")
    path = workspace_of(workspace).root.absolute() / TABLES / f"{table.digest[:16]}.jsonl"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, "".join(f"{canonical(row)}\n" for row in table.rows))
    return path, settings


def _reward(reward: Any) -> dict[str, Any]:
    if isinstance(reward, Mapping):
        function = {"function": reference_of(reward["function"])} if "function" in reward else {}
        return {"type": "judge" if "url" in reward else "function", **reward, **function}
    call = "async" if inspect.iscoroutinefunction(reward) else "plain"
    return {"type": "function", "function": reference_of(reward), **({"call": call} if call != "plain" else {})}


def folders_of(*functions: Any) -> tuple[str, ...]:
    """Folders that functions and classes, or their names, are imported from; installed ones have none."""
    found = (_folder_of_name(each) if isinstance(each, str) else _folder(each) for each in functions if each)
    return tuple(dict.fromkeys(filter(None, found)))


def reference_of(function: Any, classes: bool = False) -> str:
    """``package.module:function`` of a function that other processes can import; of a class too, with ``classes``.

    Raises:
        CoevoError: it is none, or they cannot.
    """
    if isinstance(function, str):
        return function
    name, module = getattr(function, "__qualname__", ""), getattr(function, "__module__", "")
    if not (inspect.isroutine(function) or (classes and isinstance(function, type))) or not name:
        raise CoevoError(f"{function!r:.80} is no function: give one, or its name as 'package.module:function'")
    if module == "__main__" or "<" in name or "." in name or _source(module) is None:
        place = "a notebook or the main script" if module == "__main__" else "another function, a class or no file"
        raise CoevoError(
            f"{name} is defined in {place}, from where other processes cannot import it: write it at the top level of "
            "a file of its own, such as rewards.py, and import it from there"
        )
    if getattr(sys.modules[module], name, None) is not function:
        raise CoevoError(f"{module} has another {name} than this one: give the function that stands in the file")
    return f"{module}:{name}"


def _source(module: str) -> str | None:
    return getattr(sys.modules.get(module), "__file__", None)


def _folder_of_name(reference: str) -> str:
    """Folder of the module of a reference; empty for an installed one, and where there is none."""
    spec = PathFinder.find_spec(reference.partition(":")[0].partition(".")[0])
    if spec is None or ":" not in reference:
        return ""
    places = list(spec.submodule_search_locations or ())
    folder = str(Path(places[0] if places else spec.origin or "").absolute().parent)
    return "" if spec.name == "coevo" or folder.startswith(INSTALLED) else folder


def _folder(function: Callable[..., Any]) -> str:
    """Folder that a function's module is imported from; empty for an installed one."""
    module = function.__module__
    file = Path(_source(module) or "").absolute()
    depth = module.count(".") + (file.name == "__init__.py")
    folder = str(file.parents[depth])
    own = module.partition(".")[0] == "coevo" or str(file).startswith(INSTALLED)
    return "" if own else folder
