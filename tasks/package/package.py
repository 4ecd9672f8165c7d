"""A package: the policy, the bank and the settings of one revision in plain files, independent of the run.

<directory>/policy/       model and tokenizer, with the base model if the policy consists of adapters
<directory>/bank/         see ``coevo.memory.exchange.parquet_files``; missing if the method has no bank
<directory>/encoders/     sentence encoders that the configuration names by directory
<directory>/config.json   the resolved configuration
<directory>/tools.json    tools that the environment declares, as JSON schemas of functions
<directory>/answer.json   form of an answer that the environment names, ``null`` without one
<directory>/origin.json   ``PackageOrigin``
"""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from types import UnionType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from coevo.configs.base import is_name
from coevo.configs.load.load import validate
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.configs.run_config import RunConfig
from coevo.configs.sections import EvaluationConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.memory.exchange.parquet_files import PlainBank, Readable, save
from coevo.memory.retrieval.encoder import BUNDLED
from coevo.memory.retrieval.index import Index
from coevo.models.policy.language_model import Policy
from coevo.records.answer_form import ANSWER_FORM, AnswerForm, OwnForm
from coevo.records.draws import key
from coevo.records.entry import Entry
from coevo.records.task import Task
from coevo.tasks.play.retrieve import index_of, is_shown
from coevo.tasks.preflight.environment_errors import asked, guided, sampled
from coevo.utilities.errors import CoevoError

ENCODERS = "encoders"
"""Folder of a package with its encoders."""
PACKED = re.compile(rf"{ENCODERS}/\d+")
"""Name of an encoder inside a package."""
LOOKED_AT = 4
"""Number of training tasks, and of tasks per panel, whose tools and forms of answers are compared."""


@dataclass(frozen=True, slots=True)
class PackageOrigin:
    """Origin of a package.

    Attributes:
        run: name of the run.
        revision: revision of the run.
        iteration: number of policy updates.
        commit: hash of its lineage commit.
        config_hash: hash of the configuration.
        code: revision of the code that made it.
        evaluated: revision of the latest evaluation, whose results are in ``success``; None without one.
        success: success rate by held-out panel.
        panels: hash by held-out panel.
    """

    run: str
    revision: int
    iteration: int
    commit: str
    config_hash: str
    code: str
    evaluated: int | None
    success: Mapping[str, float]
    panels: Mapping[str, str]

    @property
    def name(self) -> str:
        """``RUN@N``."""
        return f"{self.run}@{self.revision}"


ORIGIN = TypeAdapter(PackageOrigin)


class Package:
    """The package in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def config(self) -> RunConfig:
        """The resolved configuration of its run."""
        settings = self._json("config.json", dict)
        for encoder in _encoders(settings.get("bank")):
            if PACKED.fullmatch(str(encoder.get("model"))):
                encoder["model"] = str(self.directory / encoder["model"])
        return validate(settings, source=self.origin.name)

    @cached_property
    def origin(self) -> PackageOrigin:
        """Origin of the package."""
        try:
            origin = ORIGIN.validate_python(self._json("origin.json", dict))
        except ValidationError as error:
            raise self._damaged("origin.json", str(error.errors()[0]["msg"])) from None
        if not is_name(origin.run):  # it is shown
            raise self._damaged("origin.json", "it names no run")
        return origin

    def policy(self) -> Policy:
        """The policy, ready to generate. Raises ``CoevoError`` if its weights are nonsense."""
        from coevo.models.policy.sound import load_sound

        return load_sound(self.directory / "policy", self.config.policy)

    def index(self) -> Index | None:
        """Index that its agent searches; None without a bank, or while the gates of retrieval are closed."""
        if self.config.bank is None:
            return None
        bank = PlainBank(self.directory / "bank")
        shown = is_shown(self.config.bank.retrieval, self.origin.iteration, len(bank.active()))
        return index_of(bank, self.config) if shown else None

    def entries(self) -> list[Entry]:
        """Active entries of the bank; empty without a bank."""
        return [] if self.config.bank is None else PlainBank(self.directory / "bank").active()

    @cached_property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """Tools that prompts declare, as JSON schemas of functions; empty if actions are plain text."""
        return tuple(self._json("tools.json", list))

    @cached_property
    def answer(self) -> AnswerForm | None:
        """Form of an answer; None if the environment names none."""
        try:
            return ANSWER_FORM.validate_json(json.dumps(self._json("answer.json", dict | None)))
        except ValidationError as error:
            raise self._damaged("answer.json", str(error.errors()[0]["msg"])) from None

    def _json(self, name: str, kind: type | UnionType) -> Any:
        """The value in a JSON file, of a kind."""
        try:
            value = json.loads((self.directory / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise CoevoError(f"{self.directory}: holds no {name}; name what `coevo package` has made") from None
        except (OSError, ValueError, RecursionError) as error:
            raise self._damaged(name, " ".join(str(error).split())[:160]) from None
        if not isinstance(value, kind):
            raise self._damaged(name, f"it holds no JSON {'list' if kind is list else 'object'}")
        return value

    def _damaged(self, name: str, why: str) -> CoevoError:
        return CoevoError(f"{self.directory}: {name} is damaged ({why}): package the run again")


def pack(directory: Path, policy: Path, bank: Readable | None, config: RunConfig, origin: PackageOrigin) -> Package:
    """Write a package into a directory.

    Args:
        directory: target, created if missing.
        policy: directory of the policy.
        bank: bank at the revision; None for a method without one.
        config: resolved configuration.
        origin: origin of the package.

    Raises:
        CoevoError: the policy is nonsense or behind an endpoint, the base model of its adapters or an encoder is
            missing, or the tools or forms of answers of the environment differ from task to task, or need code of the
            environment.
    """
    if isinstance(config.policy, EndpointPolicyConfig):
        raise CoevoError(
            f"policy.type=endpoint has no weights to package, they are at {config.policy.url}: give the bank away with "
            "`coevo bank export`"
        )
    from coevo.models.policy.policy import bundle
    from coevo.models.policy.sound import load_sound

    tools, form = declared(config)
    directory.mkdir(parents=True, exist_ok=True)
    bundle(policy, directory / "policy")
    load_sound(directory / "policy", config.policy)
    if bank is not None:
        save(bank, directory / "bank")
    settings = config.model_dump(mode="json")
    for number, encoder in enumerate(_encoders(settings["bank"])):
        encoder["model"] = _packed(encoder["model"], directory, number)
    for name, value in {"config": settings, "origin": asdict(origin)}.items():
        (directory / f"{name}.json").write_text(json.dumps(value, indent=1, sort_keys=True), encoding="utf-8")
    # Templates write the fields of a tool in their order.
    (directory / "tools.json").write_text(json.dumps(tools, indent=1), encoding="utf-8")
    (directory / "answer.json").write_text(json.dumps(form, indent=1), encoding="utf-8")
    return Package(directory)


def _encoders(settings: Any) -> Iterator[dict[str, Any]]:
    """Settings of every encoder of the bank, at any depth."""
    for name, value in settings.items() if isinstance(settings, dict) else ():
        if name == "encoder" and isinstance(value, dict):
            yield value
        yield from _encoders(value)


def _packed(model: str, directory: Path, number: int) -> str:
    """Copy an encoder's files into the package and return its name there; the bundled one is not copied."""
    if model == BUNDLED:
        return model
    if not Path(model).is_dir():
        raise CoevoError(f"encoder.model={model}: no such directory; name one of a sentence-transformers model")
    inside = f"{ENCODERS}/{number}"
    shutil.copytree(model, directory / inside)
    return inside


def declared(config: RunConfig) -> tuple[list[Mapping[str, Any]], Mapping[str, Any] | None]:
    """Tools and form of answers of every prompt of a run, as JSON; none for the ``words`` style, which has no guide.

    Raises:
        CoevoError: they differ from task to task, the form has a parser of its own, or the environment fails.
    """
    if config.context.style == "words":
        return [], None
    with closing(make(config.env)) as env:
        tasks = [*sampled(env, LOOKED_AT, key("tools")), *_of_panels(env, config.evaluation)]
        guides = [guided(env, task) for task in tasks]
    if len({json.dumps(guide.tools) for guide in guides}) > 1:
        raise CoevoError(
            f"{env.name} declares other tools from task to task, and a package holds one list: declare all of them in "
            "every guide, and refuse a call that a task does not allow"
        )
    form = guides[0].answer
    if any(guide.answer != form for guide in guides):
        raise CoevoError(
            f"{env.name} names other forms of answers from task to task, and a package holds one: name one"
        )
    if isinstance(form, OwnForm):
        raise CoevoError(
            f"{env.name} has a parser of its own ({form.parser}), and a package holds no code: name another form"
        )
    tools: list[Mapping[str, Any]] = json.loads(json.dumps(guides[0].tools))
    return tools, None if form is None else form.model_dump(mode="json")


def _of_panels(env: Environment[Any], evaluation: EvaluationConfig) -> list[Task]:
    names, size = dict.fromkeys((*evaluation.panels, *evaluation.final_panels)), min(LOOKED_AT, evaluation.tasks)
    return [task for name in names for task in asked(env, "panel", partial(env.panel, name, size)).tasks]
