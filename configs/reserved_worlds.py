"""Worlds that no setting was chosen on: a range that nothing else here names, opened in blocks, one after another.

A world of the range is also the seed of the runs in it; where there are no worlds, it is the seed alone.
"""

from coevo.utilities.errors import CoevoError

FIRST, BLOCKS, SIZE = 6_104_000_000, 1000, 100
"""The first world, the number of blocks, and the worlds of each."""


def worlds(block: int, count: int) -> range:
    """The first worlds of a block.

    Raises:
        CoevoError: the block has fewer, or there is no such block.
    """
    if count > SIZE:
        raise CoevoError(f"a block of reserved worlds has {SIZE}: ask for {SIZE} seeds at most, not {count}")
    if not 0 <= block < BLOCKS:
        raise CoevoError(f"all {BLOCKS} blocks of reserved worlds are open: reserve another range")
    return range(FIRST + block * SIZE, FIRST + block * SIZE + count)


def is_reserved(number: int) -> bool:
    """Return True for a reserved world or seed."""
    return FIRST <= number < FIRST + BLOCKS * SIZE
