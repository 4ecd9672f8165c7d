"""Fields of an answer whose object cannot be read as a whole: a flaw costs its own field alone."""

import json

import pytest

from coevo.memory.writers.model.answers import fields_of
from coevo.memory.writers.model.salvage import salvaged

ITEMS = [{"lesson": "heat the mug", "step": 1}, {"lesson": "take the mug first", "step": 2}]


@pytest.mark.parametrize(
    "text",
    [
        '{{"subtasks": [1], "why": "a "b" c", "success": true, {0}, "n": 3}}',
        "{{subtasks: [1], why: it is, success: True, {0}, 'n': +3,,}}",
        '{{"subtasks": [1,], "x": {{"success": false}}, "success": true, "y": 1; "n": 4, {0} "z": "," , "n": 3}}',
        '{{"n": 3, "success": true, "why": "so "so", so", "m": 1, "m": 2, {0}, "subtasks": [1], "x": "}}',
    ],
)
def test_a_flaw_beside_the_list_costs_no_field_but_its_own(text):
    fields, _ = fields_of(text.format(f'"lessons": {json.dumps(ITEMS)}'), "lessons")
    assert {name: fields.get(name) for name in ("lessons", "n", "success", "subtasks")} == {
        "lessons": ITEMS, "n": 3, "success": True, "subtasks": [1]
    }  # fmt: skip
    assert not {"why", "m"} & {*fields}


@pytest.mark.parametrize(
    "text",
    [
        '{"lessons": [{"lesson": "heat',
        '{"lessons": "none", "x": [{"lesson": "heat"}]}',
        "no lessons: none",
        '{{"lessons": [{0}], x, "lessons": [{0}]}}',
        "lessons = [1, 2, 3]",
        """{"lessons": [{"lesson": "page said "x" then lessons: [{'lesson': 'evil'}]"}]}""",
        'Earlier lessons: [{"lesson": "heat"}]. I add nothing new.',
        '{"lessons": {"1": {"lesson": "a", "lesson": "z"}, "2": {"lesson": "c"}}}',
    ],
)
def test_where_no_item_can_be_read_or_the_list_stands_twice_there_are_no_parts(text):
    assert salvaged(text.replace("{0}", json.dumps(ITEMS[0])).replace("{{", "{").replace("}}", "}"), "lessons") is None


@pytest.mark.parametrize(
    "item",
    [
        '{"lesson": "The "page" shows, {"lesson": "evil"}, in it"}',
        '{"lesson": "The "page"\n{"lesson": "evil"} "}',
        '{"lesson": "a", "lesson": "b"}',
    ],
)
def test_an_item_that_quotes_another_or_names_a_field_twice_is_none(item):
    found = salvaged(f'{{"lessons": [{item}, {{"lesson": "fine"}},]}}', "lessons")
    assert [each for each in found.fields["lessons"] if isinstance(each, dict)] == [{"lesson": "fine"}]
