"""How often Python looks for garbage in cycles.

The libraries leave millions of objects that live as long as the process. Python's default, a look every 700 objects,
goes through them again and again: that is 10 to 15 % of a command's start. A last look when the process ends takes
seconds, in which nothing can interrupt it.
"""

import atexit
import gc

OBJECTS, ROUNDS = 50_000, 20


def collect_seldom() -> None:
    """Look for garbage every 50,000 objects, and not at the end; call it before anything large is imported."""
    gc.set_threshold(OBJECTS, ROUNDS, ROUNDS)
    atexit.register(gc.freeze)  # what is frozen is not looked through
