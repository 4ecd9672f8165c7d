"""``RUN``, ``RUN@N`` and ``RUN@TAG``, and nothing else."""

import pytest

from coevo.flows.history.revision_reference import Reference
from coevo.utilities.errors import CoevoError


def test_a_run_with_and_without_a_revision():
    assert Reference.parse("a-1.b_2") == Reference("a-1.b_2", None)
    assert Reference.parse("a@0") == Reference("a", 0)
    assert Reference.parse("a@12") == Reference("a", 12)


def test_a_run_with_a_tag():
    assert Reference.parse("a@best") == Reference("a", "best")
    assert Reference.parse("a@1.5") == Reference("a", "1.5")


@pytest.mark.parametrize("text", ["", "@3", "a@", "a@1@2", "a@-1", "a@b c", "a@.b", "a b", "a@1\n"])
def test_anything_else_is_one_line_with_an_example(text):
    with pytest.raises(CoevoError, match="first@12") as caught:
        Reference.parse(text)
    assert "\n" not in str(caught.value)
