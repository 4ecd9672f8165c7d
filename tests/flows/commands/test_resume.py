"""A new length is checked before it is written down."""

import pytest
from support import small_run


@pytest.mark.parametrize(
    ("settings", "iterations", "says"),
    [
        (["bank=null", "update=null", "iterations=0"], 5, "leave nothing to learn"),
        (["schedule={type: policy-then-bank, switch_at: 2}"], 1, "none of iterations=1"),
    ],
)
def test_a_length_that_the_run_cannot_have_is_refused_and_the_run_stays_as_it_is(
    coevo, tmp_path, settings, iterations, says
):
    paths = small_run.build(tmp_path, "mine", settings)
    before = paths.config.read_bytes()
    result = coevo("resume", "mine", "--iterations", iterations, "--workspace", tmp_path)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.startswith("coevo: mine: ")
    assert says in result.err
    assert paths.config.read_bytes() == before
