"""TextWorld: games that are generated from seeds and run in an interpreter of their own (an extra).

An import without that package raises ``CoevoError``. ``games`` makes the files of games, ``textworld_games`` plays
them.
"""

from importlib.util import find_spec

from coevo.utilities.errors import CoevoError

if find_spec("textworld") is None:
    raise CoevoError(
        "env.type=textworld: textworld is not installed; install the extra: pip install 'coevo[textworld]'"
    )

from coevo.envs.textworld.textworld_games import TextWorld

__all__ = ["TextWorld"]
