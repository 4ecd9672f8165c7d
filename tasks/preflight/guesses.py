"""Guessed actions of an environment without an expert: each verb of its guide with one word."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coevo.envs.base import Guide
from coevo.models.answers.forms import call_text


def guesses(verbs: Sequence[str], observation: str, guide: Guide) -> Iterator[str]:
    """Each verb alone, and with each word of the observation and the guide; a tool with each as its arguments."""
    words = dict.fromkeys(word.strip(".,:;!?") for word in f"{observation} {guide.text}".split())
    required = _required(guide)
    for verb in verbs:
        if verb in required:
            yield from (call_text(verb, _filled(required[verb], word)) for word in ("", *words))
        else:
            yield verb
            yield from (f"{verb} {word}".strip() for word in words if word)


def takes_one_word(verb: str, guide: Guide) -> bool:
    """Report whether a guide shows a verb with one word at most: no bracket, no phrase, no second argument."""
    shown = re.search(rf"(?<!\w){re.escape(verb)}(\s*[\[({{<]|(\s+[^\s.;,:]+){{3}})", guide.text)
    return shown is None and len(_required(guide).get(verb, ())) <= 1


def _required(guide: Guide) -> dict[str, Mapping[str, Any]]:
    """Schemas of the required arguments of each tool."""
    found = dict[str, Mapping[str, Any]]()
    for tool in guide.tools:
        function = tool.get("function", tool)
        schema = function.get("parameters") or {}
        properties = schema.get("properties") or {}
        found[str(function["name"])] = {name: properties.get(name) or {} for name in schema.get("required") or ()}
    return found


def _filled(arguments: Mapping[str, Any], word: str) -> dict[str, object]:
    """Arguments of their types, with a word for each text."""
    others = {"integer": 0, "number": 0.0, "boolean": True, "array": [word], "object": {}}
    return {
        name: (schema.get("enum") or [others.get(str(schema.get("type")), word)])[0]
        for name, schema in arguments.items()
    }
