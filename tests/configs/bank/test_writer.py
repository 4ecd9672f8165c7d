"""Kinds of writers: which score, reflect or edit, and their earlier names."""

from typing import get_args

import pytest
from pydantic import TypeAdapter
from support.outside import built_in

from coevo.configs.bank.writer import AnyWriterConfig, WriterConfig

DOES = {
    "contrast": {"scores"},
    "extremes": {"scores"},
    "reflection": {"reflects"},
    "editor": {"edits"},
    "skills": set(),
}
"""By what a writer compares, as a rule and as a model."""


def does(kind):
    return {name for name in ("scores", "reflects", "edits") if getattr(kind, name)}


def test_a_rule_and_a_model_do_the_same():
    kinds = {get_args(kind.model_fields["type"].annotation)[0]: kind for kind in built_in(AnyWriterConfig)}
    assert {name: does(kind) for name, kind in kinds.items()} == {
        f"{way}-{name}": what for name, what in DOES.items() for way in ("quote", "model")
    }


def test_a_writer_of_another_kind_does_nothing_of_it():
    assert does(WriterConfig) == set()


@pytest.mark.parametrize("name", DOES)
def test_a_rule_may_have_its_earlier_name(name):
    for written in (name, f"quote-{name}"):
        assert TypeAdapter(AnyWriterConfig).validate_python({"type": written}).type == f"quote-{name}"
