"""Every number of the schema has an upper bound, and so has the length of every text and list."""

import importlib
import pkgutil
import time
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import JsonValue
from pydantic.fields import FieldInfo

import coevo.configs
from coevo.configs.bank.writer_model_config import EndpointAccess
from coevo.configs.base import TEXT, Config
from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.configs.outside_part import OutsidePartConfig
from coevo.utilities.errors import ConfigError

for module in pkgutil.walk_packages(coevo.configs.__path__, "coevo.configs."):
    importlib.import_module(module.name)

FREE = (
    {
        ("PluginEnvConfig", "options"): "belongs to the plug-in; a recipe has at most 32 KiB",
        ("ContextConfig", "template"): "belongs to the chat template; names and texts are short",
        ("GymnasiumConfig", "options"): "belongs to the environment; a recipe has at most 32 KiB",
        ("FactoryConfig", "options"): "the same",
        ("VerifiersConfig", "options"): "the same",
        ("DeepSpeedConfig", "settings"): "belongs to DeepSpeed; a recipe has at most 32 KiB",
    }
    | {
        (kind.__name__, "extra"): "belongs to the endpoint; a recipe has at most 32 KiB"
        for kind in (EndpointAccess, *EndpointAccess.__subclasses__())
    }
    | {
        (kind.__name__, "options"): "belongs to the part; a recipe has at most 32 KiB"
        for kind in (OutsidePartConfig, *OutsidePartConfig.__subclasses__())
    }
)
"""Fields without bounds, and why."""


def classes(kind=Config):
    """Every class of the schema."""
    return {kind}.union(*map(classes, kind.__subclasses__())) if kind.__module__.startswith("coevo.configs") else set()


def limits(metadata):
    """Names of the limits that a field has: ``lt``, ``le``, ``max_length``."""
    flat = [each for meta in metadata for each in (meta.metadata if isinstance(meta, FieldInfo) else [meta])]
    names = ("lt", "le", "max_length")
    return {name for each in flat for name in names if getattr(each, name, None) is not None}


def leaves(annotation, metadata=()):
    """The types that a value is made of, each with the limits that it has there."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from leaves(inner[0], (*metadata, *inner[1:]))
    elif origin in (Union, UnionType):
        for choice in inner:
            yield from leaves(choice, metadata)
    elif origin is not Literal:
        yield annotation, limits(metadata)
        for part in inner if origin is tuple else ():
            yield from leaves(part)


def endless(annotation, has):
    if get_origin(annotation) is tuple:
        return Ellipsis in get_args(annotation) and "max_length" not in has
    if annotation in (int, float):
        return not has & {"lt", "le"}
    return annotation in (Any, JsonValue) or get_origin(annotation) in (list, dict, set)


def test_every_number_and_every_list_has_an_upper_bound():
    found = {
        (kind.__name__, name)
        for kind in classes()
        for name, field in kind.model_fields.items()
        if any(endless(*leaf) for leaf in leaves(field.annotation, field.metadata))
    }
    assert len(classes()) > 60
    assert found == set(FREE)


def test_every_text_is_short():
    assert {kind.model_config.get("str_max_length") for kind in classes()} == {TEXT}


ABSURD = (
    f"policy.heads={10**23}",
    "policy.layers=1000000",
    f"rollout.tasks={10**12}",
    "rollout.tasks=100000 rollout.group_size=100000",
    f"iterations={10**30}",
    f"seed={10**20}",
    "bank.retrieval.weights.strategy=1e300",
    "update.optimizer.lr=1e30",
    "update.deepspeed.timeout=1e18",
    f"evaluation.panels=[{','.join(['seen-houses'] * 101)}]",
    "rollout.engine.type=vllm rollout.engine.replicas=100000",
)


@pytest.mark.parametrize("setting", ABSURD, ids=lambda setting: setting[:40])
def test_an_absurd_value_is_one_line_at_once(setting):
    since = time.process_time()
    with pytest.raises(ConfigError) as refused:
        load_recipe("homerules-coevo-rl", setting.split())
    assert "\n" not in str(refused.value)
    assert setting.partition("=")[0].split(".")[0] in str(refused.value)
    assert time.process_time() - since < 5


@pytest.mark.parametrize("recipe", names("recipes"))
def test_what_is_shipped_is_far_from_the_bounds(recipe):
    load_recipe(recipe, ["seed=4000000000", "evaluation.tasks=100000"])
