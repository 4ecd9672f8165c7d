"""YAML text within bounds: an alias that refers to lists of aliases, or deep nesting, costs nothing to write."""

from typing import Any

import yaml

MAX_BYTES = 32 * 2**10
"""Most bytes of a configuration file."""

MAX_VALUES = 5000
"""Most values in it, each alias counted as what it stands for."""

MAX_DEPTH = 20
"""Most levels of nesting."""

MAX_CHARS = 1000
"""Most characters of a key or value."""

MISSING = "???"
"""Value that OmegaConf passes over."""

TAGS = ("null", "bool", "int", "float", "str", "timestamp", "seq", "map", "merge", "value")
"""Tags of permitted values; a date is read as text."""


class SourceError(ValueError):
    """Text that is not taken for YAML: names the line and what would be right."""


def check(text: str) -> Any:
    """Make sure that a YAML text may be constructed.

    Returns:
        its root node; None for an empty text.

    Raises:
        SourceError: it is no YAML, or too large, too deep or unprintable.
    """
    if len(text) > MAX_BYTES:
        raise SourceError(f"has more than {MAX_BYTES} characters: keep to what the schema has")
    _check_printable(text)
    try:
        _check_depth(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise SourceError(f"not readable as YAML: {error}") from None
    _size(root, 0)
    return root


def _check_printable(text: str) -> None:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.rstrip("\r").replace("\t", " ").isprintable():
            raise SourceError(f"line {number}: holds an unprintable character: remove it")


def _check_depth(text: str) -> None:
    """Before it is composed, which takes a call a level."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise _at(event, f"is nested more than {MAX_DEPTH} levels deep: write it flatter")


def _size(node: Any, depth: int) -> int:
    """Values below a node; it stops at the first bound, so that an alias bomb costs no more than a large file."""
    if depth > MAX_DEPTH:
        raise _at(node, f"is nested more than {MAX_DEPTH} levels deep, or contains itself: write it out, flatter")
    if node is not None and node.tag.removeprefix("tag:yaml.org,2002:") not in TAGS:
        raise _at(node, f"has the tag {node.tag[-MAX_CHARS:]}: write a plain value")
    if isinstance(node, yaml.ScalarNode):
        _check_scalar(node)
    size = 1
    for child in _children(node):
        size += _size(child, depth + 1)
        if size > MAX_VALUES:
            raise _at(node, f"holds more than {MAX_VALUES} values: write fewer, or without aliases")
    return size


def _children(node: Any) -> list[Any]:
    if not isinstance(node, yaml.MappingNode):
        return node.value if isinstance(node, yaml.SequenceNode) else []
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag.rpartition(":")[2] not in ("str", "merge", "value"):
            raise _at(key, "has a key that is no text: write the name of a setting")
    return [part for pair in node.value for part in pair]


def _check_scalar(node: Any) -> None:
    if len(node.value) > MAX_CHARS:
        raise _at(node, f"is longer than {MAX_CHARS} characters: shorten it")
    if not node.value.replace("\n", "").isprintable():
        raise _at(node, "holds an unprintable character: remove it")
    if node.value == MISSING:
        raise _at(node, f"has {MISSING} in place of a value: write one, or leave the key out")


def _at(node: Any, problem: str) -> SourceError:
    return SourceError(f"line {node.start_mark.line + 1}: {problem}")
