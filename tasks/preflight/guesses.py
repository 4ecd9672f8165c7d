"""Guessed actions of an environment without an expert: each verb of its guide with one word."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coevo.envs.base import Guide
from coevo.envs.verbs import verbs_of
from coevo.models.answers.forms import call_text
from coevo.models.answers.tools import schemas_of


def choices(observation: str, guide: Guide) -> list[str]:
    """Actions to draw from: all guesses with the verbs of a guide, or the words alone where it has none."""
    return [action for action in guesses(verbs_of(guide) or ("",), observation, guide) if action] or ["look"]


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
    return shown is None and len(schemas_of(guide.tools).get(verb, {}).get("required", ())) <= 1


def _filled(schema: Mapping[str, Any], word: str) -> dict[str, object]:
    """Required arguments of their types, with a word for each text."""
    properties = schema.get("properties")
    described = properties if isinstance(properties, Mapping) else {}
    return {name: _value(described.get(name), word) for name in schema.get("required", ())}


def _value(schema: object, word: str) -> object:
    """A value that a schema allows, as far as it is one."""
    if not isinstance(schema, Mapping):
        return word
    allowed = schema.get("enum")
    if isinstance(allowed, list | tuple) and allowed:
        return allowed[0]
    others = {"integer": 0, "number": 0.0, "boolean": True, "array": [word], "object": {}}
    return others.get(str(schema.get("type")), word)
