"""A mistake is named by the key that its user would set, and a misspelt key by those there are."""

from copy import deepcopy
from typing import Annotated, Literal

import pytest
from pydantic import Field, TypeAdapter, ValidationError
from support.refusal import refusal

from coevo.configs.base import Config
from coevo.configs.load.load import load_env, load_recipe, validate
from coevo.configs.load.setting_place import located
from coevo.configs.load.shipped_files import names
from coevo.utilities.errors import ConfigError

JERP = "homerules-jerp"

FOREIGN = {"options", "settings", "extra"}
"""Sections of an environment and of DeepSpeed, whose keys are their own."""


def sections(settings, above=()):
    """Every mapping of a configuration with the keys that lead to it."""
    yield above, settings
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from sections(value, (*above, key))


def kinds(settings, above):
    """Types of the sections that lead to one, and its own."""
    for key in above:
        settings = settings[key]
        yield settings.get("type")


def broken(settings, above, key, value):
    """Error message for settings where one key of one section has another value."""
    part = settings = deepcopy(settings)
    for each in above:
        part = part[each]
    part[key] = value
    with pytest.raises(ConfigError) as caught:
        validate(settings, "mine")
    return str(caught.value)


def test_every_setting_and_every_stranger_is_named_by_its_path():
    """Sections of all recipes, each once with the same keys and the same types above it."""
    shipped = (load_recipe(recipe).model_dump(mode="json") for recipe in names("recipes"))
    found = {
        (above, *kinds(settings, above), *section): (settings, above, section)
        for settings in shipped
        for above, section in sections(settings)
        if not FOREIGN & set(above)
    }
    assert len(found) > 80
    for settings, above, section in found.values():
        said = broken(settings, above, "zzz", 1)
        assert said.startswith(f"mine: {'.'.join((*above, 'zzz'))}: no such key; its section has: ")
        assert set(section) <= set(said.rpartition(": ")[2].split(", "))
        for key in section.keys() - {"type", *FOREIGN}:
            assert broken(settings, above, key, {"zzz": 1}).startswith(f"mine: {'.'.join((*above, key))}")


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (["bank.retrieval.kk=3"], "bank.retrieval.kk: no such key. Did you mean 'k'?"),
        (["bank.retrieval.k=three"], 'bank.retrieval.k = "three": '),
        (["bank.retrieval.k=-1"], "bank.retrieval.k = -1: "),
        (["bank.retrieval.utility=1"], "bank.retrieval.utility: no such key"),
        (["bank.utility={raet: 1}"], "bank.utility.raet: no such key. Did you mean 'rate'?"),
        (["bank.admission.initial=0.25"], "bank.admission: initial=0.25 is below"),
        (["bank.admission.treshold=1"], "treshold: no such key. Did you mean 'threshold'?"),
        (["update.optimizer.betas=[0.9, 7]"], "update.optimizer.betas.1 = 7: "),
        (["policy={type: pretrained, path: x, lora: {target_modules: [1]}}"], "policy.lora.target_modules = [1]: "),
        (["env.type=a:B", "env.level=1"], "env.level: no such key; its section has: type, options"),
        (
            ["bank.writer={type: quote-contrast, model: {type: endpoint}}"],
            "bank.writer.model: no such key of quote-contrast, which has type, buffer, candidates; "
            "bank.writer.type=model-contrast has it",
        ),
        (["sed=1"], "sed: no such key. Did you mean 'seed'?"),
    ],
)
def test_a_path_has_no_tag_of_a_union(settings, says):
    said = refusal(JERP, settings)
    assert said.startswith(f"{JERP}: ")
    assert says in said


def test_an_environment_by_itself_is_named_alike():
    with pytest.raises(ConfigError, match=r"^env: storeys: no such key; its section has: type, level, "):
        load_env("homerules", ["storeys=7"])


class Leaf(Config):
    type: Literal["b"]
    b: int


class Other(Config):
    type: Literal["a", "c"]
    b: Annotated[Leaf | None, Field(description="null")] = None


class Last(Config):
    type: Literal["d"]


Inner = Annotated[Leaf | Other, Field(discriminator="type")]
Outer = Annotated[Inner | Last, Field(discriminator="type")]


@pytest.mark.parametrize(
    ("kind", "value", "path", "keys"),
    [
        (Outer, {"type": "b", "b": "x"}, ("b",), ("type", "b")),
        (Outer | None, {"type": "d", "x": 1}, ("x",), ("type",)),
        (Outer, {"type": "c", "b": {"type": "b", "b": 1, "c": 1}}, ("b", "c"), ("type", "b")),
        (dict[str, list[Outer] | None], {"b": [{"type": "b", "b": "x"}]}, ("b", 0, "b"), ("type", "b")),
        (tuple[int, Outer], [1, {"type": "d", "d": 1}], (1, "d"), ("type",)),
        (tuple[Outer, ...], [{"type": "d"}, {"type": "b"}], (1, "b"), ("type", "b")),
        (tuple[Outer], [{"type": "d", "d": 1}], (0, "d"), ("type",)),
        (dict[str, int], {"a": "x"}, ("a",), ()),
    ],
)
def test_unions_in_unions_and_containers_are_followed(kind, value, path, keys):
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(value, strict=False)
    assert located(kind, caught.value.errors()[0]["loc"])[:2] == (path, keys)
