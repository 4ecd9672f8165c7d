"""What can be chosen from: ``coevo recipes``, ``coevo methods`` and ``coevo envs``."""

from configs.errors import CoevoError
from configs.load import describe, names
from flows import output
from flows.settings import JsonOption


def recipes(as_json: JsonOption = False) -> None:
    """List the recipes for `coevo run`.

    Example: coevo recipes
    """
    _show(_shipped("recipes"), as_json)


def methods(as_json: JsonOption = False) -> None:
    """List the methods that recipes build on.

    Example: coevo methods --json
    """
    _show(_shipped("methods"), as_json)


def envs(as_json: JsonOption = False) -> None:
    """List the environments that are installed.

    Example: coevo envs
    """
    from envs.registry import available

    _show([{"name": name, "description": _described(name)} for name in available()], as_json)


def _shipped(kind: str) -> list[dict[str, str]]:
    return [{"name": name, "description": describe(kind, name)} for name in names(kind)]


def _described(environment: str) -> str:
    from envs.registry import find

    try:
        found = find(environment)
    except CoevoError as error:
        return f"cannot be used: {error}"
    summary = (found.__doc__ or "").strip().partition("\n")[0]
    return f"{summary} Panels: {', '.join(found.panels)}."


def _show(rows: list[dict[str, str]], as_json: bool) -> None:
    if as_json:
        output.document(rows)
    else:
        output.table(rows, ("name", "description"))


COMMANDS = (recipes, methods, envs)
