"""Games of ALFWorld's authors: files ``game.tw-pddl`` below the folder that ``ALFWORLD_DATA`` or a setting names.

Of a file, the PDDL problem and the task in words are used. Its grammar is not: TextWorld evaluates expressions in it.
"""

import hashlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from coevo.envs.alfworld.household import FAMILIES, NAME
from coevo.records.draws import key, seed_of
from coevo.utilities.errors import CoevoError

VARIABLE = "ALFWORLD_DATA"
FILE = "game.tw-pddl"
SPLITS = ("train", "valid_seen", "valid_unseen")
MAX_GAME_BYTES = 2**24
MAX_GAMES = 100_000
_EVALUATED = re.compile(r"[{}#\[\]\\\"']")
"""Characters by which a name in a problem could become an expression of the engine's grammar; no game has them."""
_GOAL = re.compile(r"Your task is to: ([^\"\\]{1,300})")


class OfficialGame(NamedTuple):
    """A game of a file.

    Attributes:
        path: path below the folder of the data.
        family: family of its goal.
        words: task in words.
        problem: PDDL problem.
        digest: first 16 hex digits of the SHA-256 of the file.
    """

    path: str
    family: str
    words: str
    problem: str
    digest: str


def data_folder(path: str | None) -> Path:
    """Folder of the data. Raises ``CoevoError`` if no setting and no variable names one that is there."""
    named = path or os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        raise CoevoError(
            f"env.options.path or {VARIABLE}: name the folder with ALFWorld's games (alfworld-download fetches them)"
        )
    return Path(named).absolute()


@lru_cache(maxsize=8)
def listed(folder: Path, split: str) -> tuple[str, ...]:
    """Paths of a split's games, in a fixed random order, without the families that ALFWorld leaves out.

    Raises:
        CoevoError: there is none.
    """
    found = list[str]()
    for parent, _, files in os.walk(folder):
        parts = Path(parent).relative_to(folder).parts
        family = next((name for part in parts for name in FAMILIES if part.startswith(f"{name}-")), None)
        if FILE in files and split in parts and family and "movable" not in parent and "Sliced" not in parent:
            found.append(str(Path(*parts, FILE)))
        if len(found) > MAX_GAMES:
            raise CoevoError(f"{folder} has more than {MAX_GAMES} games of {split}: name the folder of the data")
    if not found:
        raise CoevoError(f"{folder} has no {FILE} below a folder {split}: name the folder with ALFWorld's games")
    return tuple(sorted(found, key=lambda each: seed_of(key(NAME, "games", each))))


def read_game(folder: Path, path: str) -> OfficialGame | None:
    """A game; None if its file says that it cannot be solved.

    Raises:
        CoevoError: it is not below the folder, or not a game.
    """
    file = (folder / path).resolve()
    if not file.is_relative_to(folder.resolve()) or file.name != FILE:
        raise CoevoError(f"{path[:200]!r} is not a game below {folder}")
    try:
        if file.stat().st_size > MAX_GAME_BYTES:
            raise CoevoError(f"{file}: more than {MAX_GAME_BYTES} bytes, which no game has")
        content = file.read_bytes()
        game = json.loads(content)
        problem, words, solvable = game["pddl_problem"], _GOAL.search(game["grammar"]), game.get("solvable", False)
    except OSError as error:
        raise CoevoError(f"{file}: {error.strerror}: set {VARIABLE} to the data that the task is of") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CoevoError(f"{file}: no game of ALFWorld: {type(error).__name__}: {str(error)[:100]}") from None
    if not isinstance(problem, str) or words is None:
        raise CoevoError(f"{file}: no game of ALFWorld: it has no problem, or no task in words")
    if _EVALUATED.search(problem):
        raise CoevoError(f"{file}: no game of ALFWorld: its problem has a character that no name has")
    family = next(name for name in FAMILIES if f"{os.sep}{name}-" in f"{os.sep}{path}")
    goal = " ".join(words[1].split()).rstrip(".")
    return OfficialGame(path, family, goal, problem, hashlib.sha256(content).hexdigest()[:16]) if solvable else None
