"""Cases of one kind: some of them run with ``make test-full``, the others with ``make soak``."""

import pytest


def mostly_soak(cases, *chosen):
    """Parameters of a test, one per case.

    ``cases`` is a mapping of names to values, or a list of names. The chosen ones are named.
    """
    named = cases if isinstance(cases, dict) else {case: case for case in cases}
    assert named.keys() >= {*chosen}, "a chosen case is none"
    return [
        pytest.param(value, id=str(name), marks=() if name in chosen else pytest.mark.soak)
        for name, value in named.items()
    ]
