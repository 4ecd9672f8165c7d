"""Another ``type`` for a part: settings that only the old type has go with it."""

from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from coevo.configs.base import Config

FREE = "options"
"""Field whose keys are those of the old type, also where the new type has a field of this name."""


def fitted(below: Mapping[str, Any], above: Mapping[str, Any], kind: type[Config]) -> dict[str, Any]:
    """Settings to be built on, without what a part has no use for once it has the type that ``above`` gives it.

    Args:
        below: settings of ``kind``; they stay as they are.
        above: what will be merged into them.
        kind: the class that both describe.
    """
    kept = dict(below)
    for name, over in above.items():
        part = kept.get(name)
        if {type(over), type(part)} == {dict, list}:
            del kept[name]  # they cannot be merged: the new one is checked
        if not isinstance(over, Mapping) or not isinstance(part, Mapping) or name not in kind.model_fields:
            continue
        choices = classes(kind.model_fields[name].annotation)
        changed = "type" in over and over["type"] != part.get("type")
        chosen = named(choices, over.get("type", part.get("type")))
        if chosen is None:
            continue
        if changed:
            common = chosen.model_fields.keys() - {FREE} | {"type"}
            part = {key: value for key, value in part.items() if key in common}
        kept[name] = fitted(part, over, chosen)
    return kept


def named(choices: list[type[Config]], kind: object) -> type[Config] | None:
    """The class that a type names, the only one where there is no choice; None where it names none."""
    if len(choices) == 1:
        return choices[0]
    return next((each for each in choices if _is_named(each, kind)), None)


def _is_named(choice: type[Config], kind: object) -> bool:
    annotation = choice.model_fields["type"].annotation
    if get_origin(annotation) is Literal:
        return kind in get_args(annotation)
    return isinstance(kind, str)


def classes(annotation: Any) -> list[type[Config]]:
    """The configuration classes of a field, in the order of its union."""
    if isinstance(annotation, type) and issubclass(annotation, Config):
        return [annotation]
    return [found for part in get_args(annotation) for found in classes(part)]
