"""Location of a mistake in a configuration, as keys that a user sets, and the keys of its section."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from coevo.configs.base import Config
from coevo.utilities.errors import nearest

FREE = "options"
"""Field whose keys are those of the old type, also where the new type has a field of this name."""


SUBJECTS = ("id", "factory")
"""Fields that name what all other settings of their section are about."""
STAYING = ("type", "python", "simulator")
"""Settings that also hold for another subject."""


class SettingPlace(NamedTuple):
    """A setting, or where one is missing."""

    path: tuple[str | int, ...]
    """Keys and positions, from the outermost."""
    keys: tuple[str, ...]
    """Settings that its section has; none where it has no fixed ones."""
    kind: str = ""
    """Type of its section; empty where it has one type only."""
    others_with: tuple[str, ...] = ()
    """Other types of its section that have the setting."""

    def others(self) -> str:
        """The most similar type that has the key, or key of its section, or all of them, as the end of a message."""
        if self.others_with:
            similar = get_close_matches(self.kind, self.others_with, n=1, cutoff=0.0)[0]
            section = "".join(f"{part}." for part in self.path[:-1])
            return f" of {self.kind}, which has {', '.join(self.keys)}; {section}type={similar} has it"
        near = nearest(str(self.path[-1]), self.keys)
        return f".{near}" if near else f"; its section has: {', '.join(self.keys)}"


def located(kind: Any, location: Sequence[str | int]) -> SettingPlace:
    """The place that pydantic means; its location also names the choice of each union, which nobody can set.

    Args:
        kind: the class, or union of classes, that was validated.
        location: ``loc`` of an error.
    """
    steps = list(_steps(kind, location))
    path = tuple(part for part, *_ in steps)
    _, last, choices = steps[-1] if steps else (None, None, [])
    if last is None:
        return SettingPlace(path, ())
    mine = _type(last)
    having = [_type(each) for each in choices if mine and each is not last and str(path[-1]) in each.model_fields]
    return SettingPlace(path, tuple(last.model_fields), mine, tuple(filter(None, having)))


def _steps(kind: Any, location: Sequence[str | int]) -> Iterator[tuple[str | int, type[Config] | None, list[Any]]]:
    """Each key with the class that has it, and the choices of that class; a tag may be spelt like a key."""
    choices: list[Any] = []
    for part in location:
        kind = _bare(kind)
        if get_origin(kind) in (Union, UnionType):
            choices = classes(kind)
            kind = named(choices, part)
            continue
        owner = kind if isinstance(kind, type) and issubclass(kind, Config) else None
        yield part, owner, choices
        kind, choices = _of(owner, part) if owner else _item(kind, part), []


def _type(kind: type[Config]) -> str:
    """Type that a user sets for a class; empty where it has no fixed one."""
    field = kind.model_fields.get("type")
    options = get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()
    return str(options[0]) if options else ""


def _bare(kind: Any) -> Any:
    """Without annotations, and without null where that is the only other choice."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    some = [each for each in get_args(kind) if each is not NoneType]
    return _bare(some[0]) if get_origin(kind) in (Union, UnionType) and len(some) == 1 else kind


def _of(owner: type[Config], key: str | int) -> Any:
    field = owner.model_fields.get(str(key))
    return field.annotation if field else None


def _item(kind: Any, key: str | int) -> Any:
    """Type of an item of a list, a tuple or a mapping."""
    held = get_args(kind)
    if get_origin(kind) is not tuple:
        return held[-1] if held else None
    return held[key] if isinstance(key, int) and key < len(held) and held[-1] is not Ellipsis else held[0]


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
        elif over.keys() >= chosen.model_fields.keys() or _is_another(over, part, chosen):
            part = {key: value for key, value in part.items() if key in STAYING}
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


def _is_another(over: Mapping[str, Any], part: Mapping[str, Any], chosen: type[Config]) -> bool:
    """True if ``over`` names another subject than ``part``."""
    subjects = (name for name in SUBJECTS if name in chosen.model_fields)
    return any(name in over and over[name] != part.get(name, over[name]) for name in subjects)
