"""Guessed actions of an environment without an expert: each verb of its guide with one word."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from coevo.envs.base import Environment, Guide
from coevo.envs.verbs import verbs_of
from coevo.models.answers.call_tools import schemas_of
from coevo.models.answers.forms import call_text
from coevo.models.answers.tool_schema import Schema
from coevo.records.demonstration import Moment
from coevo.records.draws import Key, generator


def choices(observation: str, guide: Guide) -> list[str]:
    """Actions to draw from: all guesses with the verbs of a guide, or the words alone where it has none."""
    return [action for action in guesses(verbs_of(guide) or ("",), observation, guide) if action] or ["look"]


def choose(
    env: Environment[Any],
    state: Any,
    moment: Moment,
    draw: Key,
    given: Sequence[str],
    guess: Callable[[str], Sequence[str]],
) -> str:
    """The expert's action if there is an expert and none are given; else one of those given, or of the guesses.

    Args:
        env: environment that may have an expert.
        state: the state.
        moment: the moment that shows it.
        draw: decides the action.
        given: actions to draw from; empty for the expert, or guesses.
        guess: guessed actions for an observation.
    """
    if env.has_expert and not given:
        return env.advise(state, moment, draw).action
    actions = given or guess(moment.observation)
    return actions[int(generator(draw).integers(len(actions)))]


def guesses(verbs: Sequence[str], observation: str, guide: Guide) -> Iterator[str]:
    """Each verb alone, and with each word of the observation and the guide; a tool with each as its arguments."""
    words = dict.fromkeys(word.strip(".,:;!?") for word in f"{observation} {guide.text}".split())
    tools = schemas_of(guide.tools)
    for verb in verbs:
        if verb in tools:
            yield from (call_text(verb, _filled(tools[verb], word)) for word in ("", *words))
        else:
            yield verb
            yield from (f"{verb} {word}".strip() for word in words if word)


def takes_one_word(verb: str, guide: Guide) -> bool:
    """Report whether a guide shows a verb with one word at most: no bracket, no phrase, no second argument."""
    shown = re.search(rf"(?<!\w){re.escape(verb)}(\s*[\[({{<]|(\s+[^\s.;,:]+){{3}})", guide.text)
    return shown is None and len(schemas_of(guide.tools).get(verb, Schema({})).required) <= 1


def _filled(schema: Schema, word: str) -> dict[str, object]:
    """Required arguments of their types, with a word for each text."""
    return {name: _value(schema, name, word) for name in schema.required}


def _value(schema: Schema, name: str, word: str) -> object:
    """A value that a schema allows for an argument, as far as it is one."""
    types = schema.types(name)
    others = {"integer": 0, "number": 0.0, "boolean": True, "array": [word], "object": {}}
    fitting = [] if "string" in types else [value for kind, value in others.items() if kind in types]
    return next(iter([*schema.choices(name), *fitting]), word)
