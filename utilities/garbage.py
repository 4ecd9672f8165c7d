"""Frequency of Python's search for garbage in reference cycles.

The libraries create millions of objects that live as long as the process. Python's default, a search every 700
objects, visits them again and again: that is 10 to 15 % of a command's start. A last search at the end of the process
takes seconds, and nothing can interrupt it.
"""

import atexit
import gc

OBJECTS, ROUNDS = 50_000, 20


def collect_seldom() -> None:
    """Search for garbage every 50,000 objects, and not at exit; call it before any large import."""
    gc.set_threshold(OBJECTS, ROUNDS, ROUNDS)
    atexit.register(gc.freeze)  # frozen objects are not searched
