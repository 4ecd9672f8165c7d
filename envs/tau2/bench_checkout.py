"""The authors' code of a checkout of tau2-bench, in a worker process: environments of a domain, and their evaluation.

Modules of the checkout are imported one by one, without the package's own ``__init__``, which needs a hundred packages
more. The package of the name ``tau2`` on the Python index is another program and is never imported.
"""

import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from coevo.utilities.errors import CoevoError

PACKAGES = "numpy pydantic loguru docstring-parser deepdiff addict toml pyyaml python-dotenv pandas"
"""Packages that the modules need."""
ASSERTIONS, DATABASE, ACTIONS, COMMUNICATED = "ENV_ASSERTION", "DB", "ACTION", "COMMUNICATE"
"""Names of parts of a reward."""
JUDGED = frozenset((ASSERTIONS, DATABASE, ACTIONS, COMMUNICATED))
"""Parts that are judged."""
GUIDELINES = ("simulation_guidelines.md", "simulation_guidelines_tools.md")
"""Files with the instructions of a model that plays a user, without tools and with tools."""


class BenchCheckout:
    """A domain of a checkout.

    Args:
        folder: the checkout.
        domain: name of the domain.
        tasks: ``base`` or ``small``.
        policy: form of telecom's policy.

    Attributes:
        tasks: the authors' tasks by id.
        messages: the authors' module of messages.
        tools: JSON schemas of the agent's tools by name.
        user_tools: those of the user's.

    Raises:
        CoevoError: its modules cannot be imported.
    """

    def __init__(self, folder: str, domain: str, tasks: str, policy: str) -> None:
        self._data = Path(folder) / "data"
        _open_package(Path(folder))
        self._domain, self.messages = _module(f"domains.{domain}.environment"), _module("data_model.message")
        self._options = {"policy_type": policy} if domain == "telecom" else {}
        made = self._domain.get_environment(**self._options)
        self.tools = {tool.name: tool.openai_schema["function"] for tool in made.get_tools()}
        self.user_tools = {tool.name: tool.openai_schema["function"] for tool in _user_tools(made)}
        self._databases = pickle.dumps((made.tools.db, made.user_tools and made.user_tools.db))
        self._evaluators = {
            name: getattr(_module(f"evaluator.evaluator_{module}"), f"{kind}Evaluator")
            for name, module, kind in (
                (DATABASE, "env", "Environment"), (ACTIONS, "action", "Action"),
                (COMMUNICATED, "communicate", "Communicate"),
            )
        }  # fmt: skip
        name = "tasks.json" if tasks == "base" else "tasks_small.json"
        load, form = _module("utils").load_file, _module("data_model.tasks").Task
        found = load(self._data / "tau2" / "domains" / domain / name)
        self.tasks: Mapping[str, Any] = {each["id"]: form.model_validate(each) for each in found}

    def environment(self, solo_mode: bool = False, **_: Any) -> Any:
        """A fresh environment, with its databases as the files have them."""
        db, user_db = pickle.loads(self._databases)  # of this process
        extra = {} if user_db is None else {"user_db": user_db}
        made = self._domain.get_environment(db=db, **extra, **self._options)
        made.solo_mode = solo_mode  # its setter describes all tools anew
        return made

    def policy(self, solo: bool) -> str:
        """Policy that the authors' code gives to an agent."""
        return str(self._domain.get_environment(solo_mode=solo, **self._options).get_policy())

    def started(self, task_id: str, solo: bool) -> Any:
        """An environment at the start of a task.

        Raises:
            CoevoError: the checkout has no such task.
        """
        if task_id not in self.tasks:
            raise CoevoError(f"env.path: the checkout has no task {task_id[:100]!r}: play the one of the run")
        state, made = self.tasks[task_id].initial_state, self.environment(solo)
        if state is not None and state.message_history:
            raise CoevoError(f"env.tasks: {task_id[:100]} begins within a conversation, which is not played")
        if state is not None:
            made.set_state(state.initialization_data, state.initialization_actions, [])
        return made

    def scenario(self, task_id: str) -> str:
        """Instructions of a model that plays the user of a task."""
        rules = (self._data / "tau2" / "user_simulator" / GUIDELINES[bool(self.user_tools)]).read_text(encoding="utf-8")
        rules = rules.replace("<PERSONA_GUIDELINES>", "")
        return f"{rules}\n\n<scenario>\n{self.tasks[task_id].user_scenario}\n</scenario>"

    def rewards(self, task_id: str, messages: Sequence[Any], solo: bool) -> tuple[dict[str, float], list[str]]:
        """Evaluate an episode.

        Returns:
            the parts that the reward is the product of, by name, and what is not met, in words. Assertions in natural
            language are not judged: a model would have to.

        Raises:
            CoevoError: no part is judged.
        """
        task = self.tasks[task_id]
        wanted = [each.value for each in task.evaluation_criteria.reward_basis]
        found, missed = dict[str, float](), list[str]()
        if {DATABASE, ASSERTIONS} & set(wanted):
            info = self._evaluators[DATABASE].calculate_reward(
                environment_constructor=self.environment, task=task, full_trajectory=list(messages), solo_mode=solo
            )
            found |= {part.value: value for part, value in (info.reward_breakdown or {}).items()}
            missed += _missed(info)
        for part in (ACTIONS, COMMUNICATED):
            if part in wanted:
                info = self._evaluators[part].calculate_reward(task=task, full_trajectory=list(messages))
                found[part] = info.reward
                missed += [] if info.reward == 1 else [UNMET[part]]
        parts = {name: float(found[name]) for name in wanted if name in found}
        if not parts:
            raise CoevoError(f"env.tasks: no part of the reward of {task_id[:100]} is judged: leave the task out")
        return parts, missed


UNMET = {
    DATABASE: "the records are not as the task needs them",
    ACTIONS: "a call that the task needs was not made",
    COMMUNICATED: "the customer was not told all that the task needs",
}
"""Feedback of a part of the reward that is missing."""


def _user_tools(made: Any) -> list[Any]:
    return list(made.get_user_tools()) if made.user_tools else []


def _missed(info: Any) -> list[str]:
    """Assertions that do not hold, and whether the databases differ."""
    checks = [each.env_assertion for each in info.env_assertions or () if not each.met]
    told = [f"{each.func_name.removeprefix('assert_')} is not as the task needs it" for each in checks]
    differs = any(part.value == DATABASE and value != 1 for part, value in (info.reward_breakdown or {}).items())
    return told + ([UNMET[DATABASE]] if differs else [])


@lru_cache(maxsize=4)
def checkout(folder: str, domain: str, tasks: str, policy: str) -> BenchCheckout:
    """A domain of a checkout, once in a process. Raises ``CoevoError``."""
    return BenchCheckout(folder, domain, tasks, policy)


def _open_package(folder: Path) -> None:
    """Make the modules of the checkout importable, with its data, and quiet."""
    source = folder / "src" / "tau2"
    there = getattr(sys.modules.get("tau2"), "__path__", [str(source)])
    if list(there) != [str(source)] or not (source / "environment" / "environment.py").is_file():
        raise CoevoError(f"env.path: {folder} has no code of tau2-bench in src/tau2: name a whole checkout")
    package = sys.modules.setdefault("tau2", ModuleType("tau2"))
    package.__path__ = [str(source)]
    os.environ["TAU2_DATA_DIR"] = str(folder / "data")
    with suppress(ImportError, ValueError):  # it is silent, or misses with the modules that need it
        import_module("loguru").logger.remove()


def _module(name: str) -> Any:
    """A module of the checkout. Raises ``CoevoError``."""
    try:
        return import_module(f"tau2.{name}")
    except ImportError as error:
        raise _lacking(error) from None


def _lacking(error: ImportError) -> CoevoError:
    said = " ".join(str(error).split())[:200]
    return CoevoError(
        f"env.python={sys.executable}: tau2-bench cannot be imported there ({said}): name an interpreter with the "
        f"packages of the checkout, or pip install {PACKAGES}"
    )
