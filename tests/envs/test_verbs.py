"""Verbs: what a prompt has to name, and what an environment has to accept."""

import pytest

from coevo.envs.base import Guide
from coevo.envs.verbs import Tried, refused, unnamed, verb_of, verbs_of

CALL = '{"name": "search", "arguments": {"query": "x"}}'


@pytest.mark.parametrize(
    "action, verb",
    [
        ("go safe", "go"), ("turn left", "turn left"), ("pick up", "pick up"), ("gopher", "gopher"),
        ("search[red shoes]", "search"), ("look(around)", "look"), (CALL, "search"), ("", ""),
    ],
)  # fmt: skip
def test_the_verb_of_an_action(action, verb):
    assert verb_of(action, ("go", "turn left", "turn", "pick up")) == verb


def test_a_verb_that_changed_a_state_has_to_stand_in_the_prompt_as_a_word():
    tried = [Tried("go safe", True, True), Tried("take mug", True, True)]
    tried += [Tried("wait", True, False), Tried("x", False, False)]
    assert unnamed(tried, ("go", "take"), "go PLACE: go there. mistake") == {"take"}
    assert unnamed(tried, (), "go, take") == set()


def test_a_verb_of_the_guide_has_to_be_understood_once():
    tried = [Tried("go safe", True, True), Tried("go attic", False, False), Tried("take mug", False, False)]
    assert refused(tried, ("go", "take")) == {"take"}


def test_tools_are_verbs():
    tools = ({"name": "search"}, {"type": "function", "function": {"name": "open"}})
    assert verbs_of(Guide("", ("go",), tools)) == ("go", "search", "open")
