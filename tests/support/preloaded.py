"""Imports what takes a command longest to import and starts no thread of Python's; see ``warm``.

Prefect is among it: ``use_prefect`` makes it read its settings again. Modules that ``kill_at`` changes, or that import
from those by name, are left to the command.
"""

import os

os.environ["DS_ACCELERATOR"] = "cpu"  # DeepSpeed decides once; see ``spare``

from coevo.tasks.telemetry import switch_off

switch_off()

import deepspeed  # noqa: E402, F401
import great_expectations  # noqa: E402, F401
import lance_namespace  # noqa: E402, F401
import mlflow  # noqa: E402, F401
import peft  # noqa: E402, F401
import prefect.main  # noqa: E402, F401
import transformers.models.qwen3.modeling_qwen3  # noqa: E402, F401

import coevo.configs.load.load  # noqa: E402
import coevo.envs.stateful.simulator_worker  # noqa: E402, F401  # as the environment's own fork server does
from tests.support.migrated import copy_databases  # noqa: E402

copy_databases()
