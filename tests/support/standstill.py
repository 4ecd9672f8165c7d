"""Hooks of pytest that end a test which stands still, with the stack of every thread."""

import signal

import pytest

LONG_S = 900
"""Limit of a test of the full tier without one of its own, in seconds; pyproject.toml has that of the others."""
REPEAT_S = 20
"""Seconds until a test that has not ended is interrupted again: it may wait for a thread that stands still."""


def allow_more_time(items):
    """Give tests of the full tier more time."""
    for item in items:
        if any(item.get_closest_marker(tier) for tier in ("full", "soak")) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONG_S))


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item, settings):
    """Interrupt the test again and again: pytest-timeout does it once, which the end of a ``with`` may outlast."""
    done = yield
    if settings.method == "signal":
        signal.setitimer(signal.ITIMER_REAL, settings.timeout, REPEAT_S)
    return done
