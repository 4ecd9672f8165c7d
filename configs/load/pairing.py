"""Pairings: an environment, a method and a model, composed at the values of the method's paper.

A method's file has its values for every environment and model. Its ``variants`` are those that it has with a policy
that reads prose (``pretrained``: prompts, and a model as writer), and in single environments. Where the machine has
GPUs, a pretrained policy generates there with vLLM and trains in turn, as in the recipes for pretrained policies.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coevo.configs.load.load import change, compose, shipped_settings, variants
from coevo.configs.load.shipped_files import names, shipped
from coevo.configs.run_config import RunConfig
from coevo.utilities.errors import ConfigError, unknown

LENGTH: Mapping[str, Any] = {"iterations": 150, "evaluation": {"every": 10}}
"""Length of a run whose paper names none; 150 updates are RetroAgent's for ALFWorld and WebShop."""
PROSE: Mapping[str, Any] = {"context": {"style": "chat", "experience_tokens": 800}}
"""Prompts of a model about which nothing is known, as in the files of the shipped ones."""
ANSWER: Mapping[str, Any] = {"rollout": {"sampling": {"max_new_tokens": 512}}}
"""Length of an answer in prose, a thought included, where the paper names none."""
EMBEDDED: Mapping[str, Any] = {"rollout": {"engine": {"type": "transformers", "rows": 16}}}
"""Engine of a pretrained policy on a machine without GPUs."""
HUB_NAME = re.compile(r"[\w-][\w.-]*/[\w.-]+")
PART_CHARS = 60
"""Most characters of a part of a pairing's name."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Names of what a user pairs.

    Attributes:
        env: file of ``configs/envs``, registered name, or ``package.module:Class``.
        method: file of ``configs/methods``.
        model: file of ``configs/models``, directory or hub name of a model, or URL of an endpoint.
    """

    env: str
    method: str
    model: str


def load_pairing(
    pairing: Pairing,
    overrides: Sequence[str] = (),
    gpus: Callable[[], int] = int,
    registered: Collection[str] = (),
) -> RunConfig:
    """The validated configuration of a pairing, with a user's settings.

    Args:
        pairing: environment, method and model.
        overrides: settings as ``KEY=VALUE``, which win over all.
        gpus: counts the GPUs of the machine; asked for a pretrained policy alone.
        registered: names of environments besides the shipped files.

    Raises:
        ConfigError: there is no such environment, method or model, or they do not describe a possible run.
    """
    env = _environment(pairing.env, registered)
    if pairing.method not in names("methods"):
        raise ConfigError(unknown("method", pairing.method, names("methods"), "`coevo methods` lists them"))
    model = _model(pairing.model)
    kind, trains, own = policy_of(model)["type"], trains_weights(pairing.method), variants(pairing.method)
    if kind == "endpoint":
        _check_served(pairing, overrides)
    scale: list[Mapping[str, Any]] = []
    if kind == "pretrained":
        scale.append(_on_gpus(count, trains) if (count := gpus()) else EMBEDDED)
    if kind != "scratch":
        scale += [ANSWER, own.get("pretrained", {})]
    bases = [LENGTH, env, *model, f"methods/{pairing.method}", *scale, own.get(pairing.env, {})]
    return compose(bases, {}, overrides, name_of(pairing, overrides))


def name_of(pairing: Pairing, overrides: Sequence[str] = ()) -> str:
    """Name that a pairing has as a recipe: its three parts, joined by ``_``, which is in none of them."""
    model = _served(overrides) or "endpoint" if "://" in pairing.model else pairing.model
    return "_".join(_slug(part) for part in (pairing.env, pairing.method, Path(model).expanduser().absolute().name))


def parts_of(recipe: str) -> tuple[str, str, str] | None:
    """Environment, method and model in the name of a pairing; None for another recipe."""
    parts = recipe.split("_")
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 and parts[1] in names("methods") else None


def trains_weights(method: str) -> bool:
    """True for a method that updates the policy."""
    return shipped_settings(f"methods/{method}").get("update") is not None


def policy_of(model: Sequence[str | Mapping[str, Any]]) -> Mapping[str, Any]:
    """Settings of the policy in the files and settings of a model."""
    parts = (shipped_settings(each) if isinstance(each, str) else each for each in model)
    return dict(setting for part in parts for setting in part.get("policy", {}).items())


def _slug(part: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+|\.{2,}", "-", part)[-PART_CHARS:].strip(".-") or "unnamed"


def _environment(env: str, registered: Collection[str]) -> str | dict[str, Any]:
    if env in shipped("envs"):
        return f"envs/{env}"
    if env not in registered and ":" not in env:
        remedy = "`coevo envs` lists them; a class of your own is package.module:Class"
        raise ConfigError(unknown("environment", env, {*names("envs"), *registered}, remedy))
    return {"env": {"type": env}}


def _model(model: str) -> list[str | Mapping[str, Any]]:
    """Files and settings of a model."""
    if model in shipped("models"):
        return [f"models/{model}"]
    if "://" in model:
        return ["models/endpoint", {"policy": {"url": model}}]
    if Path(model).expanduser().is_dir():
        return [PROSE, {"policy": {"type": "pretrained", "path": model}}]
    if model.startswith((".", "/", "~")):
        raise ConfigError(f"--model {model}: no such directory: name one with a causal LM in Hugging Face format")
    if HUB_NAME.fullmatch(model):
        same = next((name for name in names("models") if policy_of([f"models/{name}"]).get("path") == model), None)
        return [f"models/{same}"] if same else [PROSE, {"policy": {"type": "pretrained", "path": model}}]
    remedy = (
        f"There are {', '.join(names('models'))}; a model of your own is a directory, ORGANISATION/NAME of the hub, or "
        "the URL of an endpoint"
    )
    raise ConfigError(unknown("model", model, names("models"), remedy))


def _served(overrides: Sequence[str]) -> str:
    """Name of the model at an endpoint that the settings name; empty if they name none."""
    given = change({}, [each for each in overrides if each.startswith(("policy.model=", "policy="))])
    policy = given.get("policy")
    return str(policy.get("model", "")) if isinstance(policy, Mapping) else ""


def _check_served(pairing: Pairing, overrides: Sequence[str]) -> None:
    """Refuse an endpoint whose model is not named, or that would be trained. Raises ``ConfigError``."""
    if trains_weights(pairing.method):
        frozen = ", ".join(name for name in names("methods") if not trains_weights(name))
        raise ConfigError(
            f"--method {pairing.method} trains weights, and those of --model {pairing.model} are not here: choose one "
            f"of {frozen}, or a model in a directory"
        )
    if "://" in pairing.model and not _served(overrides):
        raise ConfigError(f"--model {pairing.model}: say which model it serves: policy.model=NAME")


def _on_gpus(gpus: int, trains: bool) -> dict[str, Any]:
    """Placement on GPUs that generate, and train in turn."""
    engine = {
        "type": "vllm",
        "replicas": gpus,
        "devices": [str(index) for index in range(gpus)],
        "dtype": "bfloat16",
        "gpu_memory_utilization": 0.45 if trains else 0.9,
    }
    placed: dict[str, Any] = {"policy": {"dtype": "bfloat16"}, "rollout": {"engine": engine}}
    if trains:
        zero = {"processes": gpus, "zero_stage": 3} if gpus > 1 else {"zero_stage": 1}
        trainer = {"device": "cuda", "activation_checkpointing": True, "tokens": 16384, "timeout": 3600.0}
        placed |= {"update": {"deepspeed": trainer | zero}, "placement": {"type": "shared"}}
    return placed
