"""Values that are made of a configuration stay what they were."""

from support.immutable import changeable

import coevo.configs


def test_no_value_can_be_changed():
    assert changeable(coevo.configs) == set()
