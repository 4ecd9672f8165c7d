"""Tools of an environment that a package holds: those of its guides, which have to be the same in every task."""

import json
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

from coevo.configs.run_config import RunConfig
from coevo.configs.sections import EvaluationConfig
from coevo.envs.base import Environment
from coevo.envs.registry import make
from coevo.records.draws import key
from coevo.records.task import Task
from coevo.tasks.preflight.environment_calls import asked, guided, sampled
from coevo.utilities.errors import CoevoError

LOOKED_AT = 4
"""Number of training tasks, and of tasks per panel, whose tools are compared."""


def declared_tools(config: RunConfig) -> list[Mapping[str, Any]]:
    """Tools that every prompt of a run declares, as JSON schemas; empty for the ``words`` style, which has no guide.

    Raises:
        CoevoError: the tools differ from task to task, or the environment fails.
    """
    if config.context.style == "words":
        return []
    with closing(make(config.env)) as env:
        tasks = [*sampled(env, LOOKED_AT, key("tools")), *_of_panels(env, config.evaluation)]
        declared = {json.dumps(guided(env, task).tools) for task in tasks}
    if len(declared) > 1:
        raise CoevoError(
            f"{env.name} declares other tools from task to task, and a package holds one list: declare all of them in "
            "every guide, and refuse a call that a task does not allow"
        )
    found: list[Mapping[str, Any]] = json.loads(declared.pop())
    return found


def _of_panels(env: Environment[Any], evaluation: EvaluationConfig) -> list[Task]:
    names, size = dict.fromkeys((*evaluation.panels, *evaluation.final_panels)), min(LOOKED_AT, evaluation.tasks)
    return [task for name in names for task in asked(env, "panel", partial(env.panel, name, size)).tasks]
