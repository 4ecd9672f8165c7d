"""Keyed randomness: every draw is a function of what it is for, so retries and resumes repeat it exactly.

A key is a tuple such as ``(seed, revision, "rollout", task id, replica, turn)``. No state of a generator goes from one
key to another, so an episode does not depend on its row in a batch or on what was drawn before it.
"""

import hashlib
from collections.abc import Sequence
from typing import NewType

import numpy as np
import numpy.typing as npt

Key = NewType("Key", tuple[int | str, ...])


def key(*parts: int | str) -> Key:
    """A key from its parts."""
    return Key(parts)


def extend(base: Key, *parts: int | str) -> Key:
    """A more specific key."""
    return Key((*base, *parts))


def seed_of(parts: Key) -> int:
    """A 64-bit seed from a key; different keys give independent seeds."""
    text = "\x1f".join(f"{type(part).__name__[0]}{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def generator(parts: Key) -> np.random.Generator:
    """A numpy generator of this key alone (Philox: the same numbers on every platform)."""
    return np.random.Generator(np.random.Philox(seed_of(parts)))


def uniforms(keys: Sequence[Key], count: int) -> npt.NDArray[np.float64]:
    """What the generator of each key draws first: (keys, count) uniforms in [0, 1)."""
    bits = np.random.Philox(0)
    rng, begun, drawn = np.random.Generator(bits), bits.state, np.empty((len(keys), count))
    for parts, row in zip(keys, drawn, strict=True):
        # As Philox seeds itself; setting one is quicker than making one.
        begun["state"]["key"] = (
            np.random.SeedSequence(seed_of(parts)).generate_state(2, np.uint64).astype(np.uint64, copy=False)
        )
        bits.state = begun
        rng.random(out=row)
    return drawn
