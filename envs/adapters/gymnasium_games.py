"""Games of Gymnasium in worker processes: actions from words, observations in words."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from coevo.envs.adapters.episode_parts import GlobalDraws, bounded, facts_or_refusal, imported, number
from coevo.envs.base import Step
from coevo.records.draws import Key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

MAX_NUMBERS = 64
"""Most numbers of an observation that is shown as numbers."""
MAX_VERBS = 256
"""Most actions that a guide lists one by one."""
MAX_STATES = 10_000
"""Most states whose words are listed for policies that know no words."""
MAX_DIGITS = 18
ANSI = "ansi"
_COLOUR = re.compile(r"\x1b\[([0-9;]*)m")
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
"""Colours by the last digit of their code."""
Wording = Callable[[Any], str]
"""Words of an observation."""


@dataclass(frozen=True)
class ActionForm:
    """Texts that are actions.

    Attributes:
        guide: which they are, in words.
        read: the action of a text; None for a text that is none.
        verbs: all of them; empty where they are many.
        answer: form of an answer, as in ``SimulatorFacts``.
    """

    guide: str
    read: Callable[[str], Any]
    verbs: tuple[str, ...] = ()
    answer: str = ""


@dataclass(frozen=True)
class GymnasiumSimulator:
    """Source of games.

    Attributes:
        settings: ``id``, ``options``, ``words``, ``actions``, ``steps`` and ``success`` of ``GymnasiumConfig``, and
            ``longest`` of its simulator.
    """

    settings: Mapping[str, Any]

    def facts(self) -> Mapping[str, Any]:
        """Actions, and all words where the states are few."""
        return facts_or_refusal(self._facts)

    def open(self, task: Task, key: Key) -> tuple["GymnasiumEpisode", str]:
        """Start a game from the seed of its task."""
        game = GymnasiumEpisode(self._made(), self.settings, task.data["seed"])
        return game, game.observation

    def _facts(self) -> Mapping[str, Any]:
        env = self._made()
        form = action_form(env.action_space, self.settings["actions"])
        words = _all_words(env, self.settings["words"])
        env.close()
        known = sorted({*words, *(word for verb in form.verbs for word in verb.split())}) if words else []
        return {"guide": form.guide, "verbs": form.verbs, "answer": form.answer, "words": known}

    def _made(self) -> Any:
        """The environment. Raises ``CoevoError`` where there is none."""
        name, options = self.settings["id"], dict(self.settings["options"])
        if self.settings["words"] == ANSI:
            options["render_mode"] = ANSI
        if self.settings["steps"] is not None:
            options["max_episode_steps"] = self.settings["steps"]
        try:
            import gymnasium
        except ImportError:
            raise CoevoError("gymnasium is not installed: pip install 'coevo[gymnasium]'") from None
        try:
            return gymnasium.make(name, disable_env_checker=True, **options)
        except Exception as error:
            said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise CoevoError(f"env.id = {name!r}: gymnasium.make({name!r}, **{options}) raises {said}") from error


class GymnasiumEpisode:
    """A running game."""

    def __init__(self, env: Any, settings: Mapping[str, Any], seed: int) -> None:
        self._env, self._least, self._longest = env, settings["success"], settings["longest"]
        self._form = action_form(env.action_space, settings["actions"])
        self._words, self._draws, self._earned = words_of(env, settings["words"]), GlobalDraws(seed), 0.0
        with self._draws:
            first, _ = env.reset(seed=seed)
            self.observation = self._seen(first)

    def act(self, action: str) -> Step[None]:
        """Take an action; a text that is none changes nothing."""
        chosen = self._form.read(action)
        if chosen is None:
            why = f"this is no action. {self._form.guide}"
            return Step(None, self.observation, bounded(why, self._longest), 0.0, False, False, valid=False)
        with self._draws:
            found, reward, terminated, truncated, _ = self._env.step(chosen)
            self.observation = self._seen(found)
        return self._step(number(reward, "step of the environment"), bool(terminated), bool(truncated))

    def close(self) -> None:
        """End the game."""
        self._env.close()

    def _step(self, reward: float, terminated: bool, truncated: bool) -> Step[None]:
        self._earned += reward
        done = terminated or truncated
        solved = reward > 0 if self._least is None else self._earned >= self._least
        end = "; the episode is over" if terminated else "; the time is up" if truncated else ""
        cut, success = truncated and not terminated, terminated and solved
        return Step(None, self.observation, f"reward {reward:g}{end}", reward, done, success, truncated=cut)

    def _seen(self, observation: Any) -> str:
        return bounded(self._words(observation), self._longest)


def action_form(space: Any, names: Sequence[str]) -> ActionForm:
    """Texts that are actions of a space.

    Raises:
        CoevoError: the space has other actions, or not as many as there are names.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return _discrete(int(space.start), int(space.n), names)
    if names:
        raise CoevoError(f"env.actions: the actions are {space}: names are for discrete ones: leave them out")
    if isinstance(space, spaces.Text):
        guide = f"An action is a text of {space.min_length} to {space.max_length} characters."
        return ActionForm(guide, lambda text: text if space.contains(text) else None, answer="block")
    if isinstance(space, spaces.MultiDiscrete | spaces.MultiBinary) and prod(space.shape) <= MAX_NUMBERS:
        guide = f"An action is {prod(space.shape)} numbers with blanks between them, one of {space}."
        return ActionForm(guide, partial(_several, space))
    raise CoevoError(f"env.id: the actions are {space}: adapters play discrete and text actions: wrap the environment")


def words_of(env: Any, words: str | None) -> Wording:
    """How the observations of an environment read.

    Raises:
        CoevoError: they have no words.
    """
    from gymnasium import spaces

    if words == ANSI:
        return lambda _: drawing(env.render())
    if words is not None:
        function = imported("env.words", words)
        return lambda observation: _text(function(observation), words)
    space = env.observation_space
    if not _is_small(space):
        raise CoevoError(
            f"env.words: the observations are {space!s:.200}: set package.module:function, which returns a text"
        )
    return partial(_state if isinstance(space, spaces.Discrete) else _described, space)


def drawing(rendered: Any) -> str:
    """A drawing of ``render_mode=ansi`` as plain text: what has a colour is in brackets behind the colour's name."""
    text, inside = _text(rendered, "render"), False

    def mark(found: re.Match[str]) -> str:
        nonlocal inside
        codes = [int(code) for code in found[1].split(";") if code]
        named = [COLOURS[code % 10] for code in codes if code // 10 in (3, 4, 9, 10) and code % 10 < 8]
        closing, inside = "]" if inside else "", bool(named)
        return f"{closing}{named[-1]}[" if named else closing

    return _CONTROL.sub("", _COLOUR.sub(mark, text) + "]" * inside).strip("\n")


def _discrete(start: int, count: int, names: Sequence[str]) -> ActionForm:
    if names and len(names) != count:
        raise CoevoError(f"env.actions names {len(names)} actions, but there are {count}: name each, in their order")
    known = {name.casefold(): start + index for index, name in enumerate(names)}

    def read(text: str) -> int | None:
        plain = " ".join(text.split()).casefold()
        if plain in known:
            return known[plain]
        action = _whole(plain)
        return action if action is not None and start <= action < start + count else None

    if names:
        return ActionForm(f"An action is one of these: {', '.join(names)}.", read, tuple(names))
    if count > MAX_VERBS:
        return ActionForm(f"An action is a number from {start} to {start + count - 1}.", read)
    verbs = tuple(str(start + each) for each in range(count))
    return ActionForm(f"An action is one of these numbers: {', '.join(verbs)}.", read, verbs)


def _whole(text: str) -> int | None:
    return int(text) if re.fullmatch(rf"-?[0-9]{{1,{MAX_DIGITS}}}", text) else None


def _several(space: Any, text: str) -> Any:
    import numpy as np

    found = [_whole(each) for each in text.split()[: MAX_NUMBERS + 1]]
    if None in found or len(found) != prod(space.shape):
        return None
    values = np.array(found, dtype=np.int64)
    fits = (values >= np.iinfo(space.dtype).min) & (values <= np.iinfo(space.dtype).max)
    action = values.astype(space.dtype).reshape(space.shape)
    return action if fits.all() and space.contains(action) else None


def _is_small(space: Any) -> bool:
    """True for texts, and for spaces of few numbers."""
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple):
        return all(map(_is_small, space.spaces))
    if isinstance(space, spaces.Dict):
        return all(map(_is_small, space.spaces.values()))
    if isinstance(space, spaces.Box | spaces.MultiDiscrete | spaces.MultiBinary):
        return prod(space.shape) <= MAX_NUMBERS
    return isinstance(space, spaces.Discrete | spaces.Text)


def _described(space: Any, value: Any) -> str:
    from gymnasium import spaces

    if isinstance(space, spaces.Tuple):
        return ", ".join(_described(inner, each) for inner, each in zip(space.spaces, value, strict=True))
    if isinstance(space, spaces.Dict):
        return "\n".join(f"{name}: {_described(inner, value[name])}" for name, inner in space.spaces.items())
    if isinstance(space, spaces.Text):
        return str(value)
    if isinstance(space, spaces.Discrete):
        return str(int(value))
    return " ".join(f"{each:.4g}" for each in value.ravel().tolist())


def _state(space: Any, value: Any) -> str:
    return f"state {int(value)}"


def _all_words(env: Any, words: str | None) -> set[str]:
    """Words of all observations; empty where they cannot be listed."""
    from gymnasium import spaces

    describe, space = words_of(env, words), env.observation_space
    if words == ANSI or not isinstance(space, spaces.Discrete) or space.n > MAX_STATES:
        return set()
    return {word for state in range(space.start, space.start + space.n) for word in describe(state).split()}


def _text(value: Any, source: str) -> str:
    if not isinstance(value, str):
        raise CoevoError(f"{source} returned {type(value).__name__} {value!r:.60}, not a text")
    return value
