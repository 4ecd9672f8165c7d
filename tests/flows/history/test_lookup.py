"""Entries are found by what a user types."""

import pytest

from coevo.flows.history.revision_reference import find_entry
from coevo.utilities.errors import CoevoError

IDS = {"3f2a9c01b7de": "mug in safe", "3f2b00000000": "cup in drawer", "77aa00000000": "mug in safe"}


def test_four_characters_of_an_id_are_enough_if_it_is_the_only_one():
    assert find_entry("77aa", IDS) == "77aa00000000"
    assert find_entry("3f2a9c01b7de", IDS | {"3f2a9c01b7de00": ""}) == "3f2a9c01b7de"


@pytest.mark.parametrize("text", ["cup in drawer", " cup  in drawer.", "3f2b00000000"])
def test_the_text_of_a_lesson_stands_for_its_id(text):
    assert find_entry(text, IDS) == "3f2b00000000"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("3f2", "'3f2' is no id of an entry, only the beginning of 3f2a9c01b7de, 3f2b00000000: write more of it"),
        ("77a", "'77a' is no id of an entry, only the beginning of 77aa00000000: write more of it"),
        ("3f2a9c01b7df", "No entry '3f2a9c01b7df'. Did you mean '3f2a9c01b7de'? `coevo bank show`"),
        ("", "No entry ''"),
        ("mug in safe", "'mug in safe' is the lesson of 3f2a9c01b7de, 77aa00000000: write the id of one of them"),
        ("Cup in drawer", "No entry 'Cup in drawer'"),
    ],
)
def test_any_other_text_is_refused(text, says):
    with pytest.raises(CoevoError) as caught:
        find_entry(text, IDS)
    assert str(caught.value).startswith(says)
