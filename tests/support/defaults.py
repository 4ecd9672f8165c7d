"""The page of defaults: every setting of a method, its value, and its source. Run it to write ``docs/defaults.md``.

PYTHONPATH=tests .venv/bin/python -m support.defaults
"""

import json
from pathlib import Path

import yaml

from coevo.configs.load.load import load_method

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "defaults.md"
GIVEN = yaml.safe_load((DOCS / "defaults.yaml").read_text(encoding="utf-8"))
"""Values that a paper gives, by method, place in the paper and setting."""
SECTIONS = ("context", "rollout", "clusters", "bank", "update", "schedule")
ELSEWHERE = ("context.style", "rollout.engine", "rollout.sampling.max_new_tokens", "update.deepspeed")
"""Settings that belong to the model and the machine, not to the method."""
HEAD = """# Defaults of the methods

Every setting of the five methods in `configs/methods/`, its value, and who chose it: a place in the paper, or this
project where the paper does not say. Where the two differ, the paper's value stands beside it. Recipes change some of
them for their size ([papers](papers.md#values-at-laptop-size)). Not listed: model, environment, engine, length of a run
and evaluation, which a recipe chooses.

`docs/defaults.yaml` declares what the papers give; this page is generated from it and from the configuration, by
`PYTHONPATH=tests .venv/bin/python -m support.defaults`.
"""


def page():
    """The whole page."""
    return "\n".join([HEAD, *(line for method in GIVEN for line in chapter(method))])


def chapter(method):
    """The lines of one method."""
    yield from (f"## {method}", "", "| setting | value | set by |", "|---|---|---|")
    for key, value in settings(method).items():
        yield f"| `{key}` | {written(value)} | {source(method, key, value)} |"
    yield ""


def settings(method):
    """Values of a method by dotted key, those that belong to elsewhere left out."""
    found = leaves(load_method(method).model_dump(mode="json", include=set(SECTIONS)))
    return {key: value for key, value in found.items() if not key.startswith(ELSEWHERE)}


def leaves(tree, path=()):
    """Values of a nested configuration by dotted key."""
    if not isinstance(tree, dict):
        return {".".join(path): tree}
    return {key: leaf for name, below in tree.items() for key, leaf in leaves(below, (*path, name)).items()}


def given(method):
    """Place and value of every setting that the method's paper gives."""
    return {key: (place, value) for place, values in GIVEN[method].items() for key, value in values.items()}


def source(method, key, value):
    """Who chose a value."""
    if key not in given(method):
        return "this project"
    place, theirs = given(method)[key]
    return f"paper, {place}" if theirs == value else f"this project; the paper has {written(theirs)} ({place})"


def written(value):
    """A value as the page shows it."""
    return value if isinstance(value, str) else json.dumps(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
