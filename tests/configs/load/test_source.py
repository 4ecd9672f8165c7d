"""Bounds of a YAML text: the most that is read, and one more."""

import pytest

from coevo.configs.load.source import SourceError, check


def nested(levels):
    return f"{'[' * levels}1{']' * levels}"


def aliased(inner, outer):
    """A value inside ``inner`` lists, repeated inside ``outer`` others: 1 + outer + inner levels above it."""
    return f"[&a {nested(inner)}, {'[' * outer}*a{']' * outer}]"


def repeated(more):
    """A list of a list of 50 values, 97 aliases of it, and others: 1 + 98 x 51 + more values."""
    return f"[&a [{', '.join('1' * 50)}], {', '.join(['*a'] * 97)}, {', '.join('1' * more)}]"


BOUNDS = {
    "characters": ("#" * 32_768, "#" * 32_769, "has more than 32768 characters: keep to what the schema has"),
    "characters of a value": ("x" * 1000, "x" * 1001, "line 1: is longer than 1000 characters: shorten it"),
    "levels": (nested(20), nested(21), "line 1: is nested more than 20 levels deep: write it flatter"),
    "levels of an alias": (aliased(10, 9), aliased(10, 10), "line 1: is nested more than 20 levels deep, or contains"),
    "values": (repeated(1), repeated(2), "line 1: holds more than 5000 values: write fewer, or without aliases"),
}


@pytest.mark.parametrize("name", BOUNDS)
def test_so_much_is_read_and_no_more(name):
    most, more, says = BOUNDS[name]
    check(most)
    with pytest.raises(SourceError) as refused:
        check(more)
    assert str(refused.value).startswith(says)


PLAIN = ("", "a:\r\n  - b\r\n", "a: |\n  two\n  lines\n", "a: 1  #\tb", "<<: {a: 1}", "=: 1", "'1': x", "a: 2020-01-01")


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_is_read(text):
    check(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: 1\nb: \x07", "line 2: holds an unprintable character: remove it"),
        ('a: 1\nb: "\\a"', "line 2: holds an unprintable character: remove it"),
        ("1: x", "line 1: has a key that is no text: write the name of a setting"),
        ("a: 1\n[b]: x", "line 2: has a key that is no text"),
        ("a: {~: x}", "line 1: has a key that is no text"),
        ("\na: !!python/object:os.system x", "line 2: has the tag tag:yaml.org,2002:python/object:os.system: write a"),
        ("a: !mine x", "line 1: has the tag !mine: write a plain value"),
        ("a: [", "not readable as YAML: "),
    ],
)
def test_the_line_is_named(text, says):
    with pytest.raises(SourceError) as refused:
        check(text)
    assert str(refused.value).startswith(says)
