"""How deep a YAML text may be nested."""

import pytest

from coevo.configs.load.source import SourceError, check


def test_twenty_levels_are_read_and_one_more_is_refused():
    check(f"{'[' * 20}1{']' * 20}")
    with pytest.raises(SourceError, match="more than 20 levels"):
        check(f"{'[' * 21}1{']' * 21}")
