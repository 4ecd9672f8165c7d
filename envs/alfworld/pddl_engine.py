"""TextWorld's engine for PDDL, in a worker process: games from a problem, with the package's domain and grammar.

The package is not imported: of it, two files and two modules of tables are read by their paths.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from coevo.envs.base import Step
from coevo.utilities.errors import CoevoError

NOTHING_HAPPENS = "Nothing happens."
MAX_ACTION_CHARS = 200
_PUT = re.compile(r"put (.+?) (?:in/on|in|on|into|onto) (.+)")
"""Older phrase for what the engine calls ``move X to Y``."""
_FREE: list[Any] = []
"""Engines of episodes that ended; each has a copy of the planner's library, which takes a file and memory."""


@lru_cache(maxsize=1)
def package() -> Path:
    """Folder of the package alfworld.

    Raises:
        CoevoError: it is not installed, or its planner is not.
    """
    found = find_spec("alfworld")
    missing = [name for name in ("textworld", "fast_downward") if find_spec(name) is None]
    if found is None or not found.submodule_search_locations or missing:
        raise CoevoError(
            "alfworld is not installed: pip install 'coevo[alfworld]', or name an interpreter that has it in env.python"
        )
    return Path(found.submodule_search_locations[0])


@lru_cache(maxsize=4)
def tables(name: str) -> Any:
    """A module of the package's tables, ``goal_library`` or ``constants``."""
    path = package() / "gen" / f"{name}.py"
    spec = spec_from_file_location(f"coevo_alfworld_{name}", path)
    if spec is None or spec.loader is None:
        raise CoevoError(f"{path} is no module: install alfworld again")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def goal_text(family: str) -> str:
    """The package's goal of a family."""
    return str(tables("goal_library").gdict[family]["pddl"])


@lru_cache(maxsize=1)
def _logic() -> tuple[str, str]:
    data = package() / "data"
    return (data / "alfred.pddl").read_text("utf-8"), (data / "alfred.twl2").read_text("utf-8")


def game_data(problem: str, words: str) -> dict[str, str]:
    """Game as the engine loads it; ``words`` is the task."""
    domain, grammar = _logic()
    safe = re.sub(r"[^\w ,.'-]", " ", words)  # The engine evaluates expressions in its grammar.
    return {"pddl_domain": domain, "grammar": grammar.replace("UNKNOWN GOAL", safe), "pddl_problem": problem}


class PddlGame:
    """A running game.

    Args:
        data: see ``game_data``.
        steps: actions after which it is cut.
        commands: True if observations list the commands that are possible.
        plan: True if every observation is the planner's plan instead, one command per line.
    """

    def __init__(self, data: Mapping[str, str], steps: int, commands: bool = False, plan: bool = False) -> None:
        self._left, self._commands, self._plan = steps, commands, plan
        self._engine = _engine(plan)
        self._engine.load(data)
        for identity, name in names_of(self._engine._entity_infos).items():
            self._engine._entity_infos[identity].name = name
        self._state = self._engine.reset()
        intro = self._state.feedback.split("\n\n")
        self._room = next((part for part in intro if part.startswith("You are in")), intro[0])

    @property
    def observation(self) -> str:
        """The room, where the agent is, and what it carries."""
        if self._plan:
            return "\n".join(self._state.policy_commands or ())
        lines = [self._room, self._standing()]
        if self._commands:
            lines.append(f"Possible: {', '.join(self._state.admissible_commands)}.")
        return "\n".join(lines)

    def _standing(self) -> str:
        facts, infos = self._state["_facts"], self._engine._entity_infos
        name = {identity: info.name for identity, info in infos.items()}
        here = {fact.arguments[1].name for fact in facts if fact.name == "atlocation"}
        at = [
            name[fact.arguments[0].name]
            for fact in facts
            if fact.name == "receptacleatlocation" and fact.arguments[1].name in here
        ]
        held = [name[fact.arguments[1].name] for fact in facts if fact.name == "holds"]
        place = f"You are at the {' and the '.join(sorted(at))}." if at else "You are in the middle of the room."
        return f"{place} You carry {' and '.join(f'a {each}' for each in sorted(held)) or 'nothing'}."

    def act(self, action: str) -> Step[None]:
        """Give a command; the reward is 1 where it reaches the goal."""
        command = command_of(action)
        valid = command in self._state.admissible_commands
        if valid:  # The engine would compute anew what stays as it is.
            self._state, _, _ = self._engine.step(command)
        self._left -= 1
        won = bool(self._state.won)
        cut = self._left <= 0 and not won
        reply = " ".join(self._state.feedback.split()) if valid else NOTHING_HAPPENS
        feedback = f"{reply} The task is done." if won else reply
        return Step(None, self.observation, feedback, float(won), won or cut, won, valid, cut)

    def close(self) -> None:
        """Leave the engine to the next game."""
        if self._engine is not None:
            _FREE.append(self._engine)
            self._engine = None


def command_of(action: str) -> str:
    """Command that an action names, in the engine's words; empty for one that no command can be."""
    text = " ".join(action[: MAX_ACTION_CHARS + 1].lower().split()).rstrip(".")
    found = _PUT.fullmatch(text)
    return "" if len(action) > MAX_ACTION_CHARS else f"move {found[1]} to {found[2]}" if found else text


def names_of(identities: Iterable[str]) -> dict[str, str]:
    """Name of each entity, as ALFWorld numbers them: ``mug_bar_03`` is ``mug 1``; the first id has the last number."""
    kinds = dict[str, str]()
    for identity in sorted(identities):
        kind, bar, _ = identity.partition("_bar_")
        kinds[identity] = (kind + "basin" if "basin" in identity else kind) if bar else ""
    left = Counter(kind for kind in kinds.values() if kind)
    names = dict[str, str]()
    for identity, kind in kinds.items():
        names[identity] = f"{kind} {left[kind]}" if kind else identity
        left[kind] -= 1
    return names


def _engine(plan: bool) -> Any:
    """An engine that is free, or a new one."""
    package()
    from textworld import EnvInfos
    from textworld.envs import PddlEnv

    infos = EnvInfos(won=True, admissible_commands=True, policy_commands=plan)
    engine = _FREE.pop() if _FREE else PddlEnv(infos)
    engine.request_infos = infos
    return engine
