"""Files of TextWorld games: each is generated from its seed and compiled once, then kept."""

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coevo" / "textworld"
"""Place of the games; they can be made again, so it may be deleted."""

COMMANDS = {
    "look, inventory, examine THING, go north / south / east / west, take THING, drop THING": "",
    "take THING from PLACE": "cs",
    "put THING on PLACE": "s",
    "insert THING into PLACE": "c",
    "open / close THING": "cd",
    "lock / unlock THING with KEY": "k",
    "eat THING": "f",
}
"""Forms of commands, each with the kinds of things of which a game needs one to have it; empty for every game."""


class GameSize(NamedTuple):
    """Size of a game: rooms, objects, and commands of its shortest solution."""

    rooms: int
    objects: int
    quest: int


def game_file(size: GameSize, seed: int, folder: Path = FOLDER) -> Path:
    """File of a game, made if it is not there; several processes may make it at once."""
    import textworld

    name = f"{textworld.__version__}-{size.rooms}-{size.objects}-{size.quest}-{seed}"
    file = folder / name / "game.z8"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as scratch:
            _make(size, seed, Path(scratch) / name / "game.z8")
            # Another process may have made it meanwhile.
            with suppress(OSError):
                (Path(scratch) / name).rename(file.parent)
    return file


def open_game(file: Path) -> Any:
    """Interpreter of a game, with the information that an agent and its rewards need."""
    import textworld

    known = ("objective", "description", "inventory", "admissible_commands", "won", "score", "max_score")
    return textworld.start(str(file), textworld.EnvInfos(**dict.fromkeys(known, True)))


def solution(file: Path) -> tuple[str, ...]:
    """Commands that solve a game, as its generator made them."""
    return tuple(json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["metadata"]["walkthrough"])


def things(file: Path) -> dict[str, str]:
    """Kind of each thing of a game by its name, sorted: ``c`` container, ``s`` supporter, ``k`` key, ``f`` food, …"""
    found = (about for _, about in json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["infos"])
    return dict(sorted((about["name"], about["type"]) for about in found if about["name"] and about["type"] != "r"))


def commands(kinds: Mapping[str, str]) -> str:
    """Forms of the commands of a game with these things, see ``things``."""
    present = set(kinds.values())
    return ", ".join(form for form, needed in COMMANDS.items() if not needed or not present.isdisjoint(needed))


def _make(size: GameSize, seed: int, file: Path) -> None:
    import textworld

    options = textworld.GameOptions()
    options.nb_rooms, options.nb_objects, options.quest_length = size
    options.seeds, options.path = seed, str(file)
    file.parent.mkdir()
    textworld.make(options)
