"""BabyAI in words, on the package minigrid (the extra ``babyai``).

An import without that package raises ``CoevoError``.
"""

import os
from importlib.util import find_spec

from coevo.utilities.errors import CoevoError

if find_spec("minigrid") is None:
    raise CoevoError("env.type=babyai: minigrid is not installed; install the extra: pip install 'coevo[babyai]'")
# minigrid imports pygame, which greets on standard output.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

from coevo.envs.babyai.babyai import BabyAI

__all__ = ["BabyAI"]
