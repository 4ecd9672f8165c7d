"""Who wrote an entry, by the revision that it comes from."""

from types import SimpleNamespace

import pytest

from coevo.flows.history.verdicts import writer_of


@pytest.mark.parametrize(
    ("bank", "metrics", "writer"),
    [
        ({"writer": {"type": "quote-contrast"}}, {}, "quote-contrast"),
        ({"writer": {"type": "package.module:Mine", "model": None}}, {}, "package.module:Mine"),
        ({"writer": {"type": "model-contrast", "model": {"type": "endpoint"}}}, {}, "model-contrast (endpoint model)"),
        ({"writer": {"type": "quote-contrast"}}, {"bank/imported": 2.0}, None),
        ({}, {}, "unknown"),
        (None, {}, "unknown"),
    ],
)
def test_the_writer_of_a_revision_is_named(bank, metrics, writer):
    assert writer_of(SimpleNamespace(metrics=metrics, state={"config": {"bank": bank}})) == writer
