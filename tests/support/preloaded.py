"""Imports what takes a command longest to import and starts no thread of Python's; see ``warm``.

Prefect reads its settings when it is imported, here before a command has named its server: ``use_prefect`` therefore
makes it read them again. Modules that ``kill_at`` changes, or that import from those by name, are left to the command.
"""

import functools
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
from prefect.context import refresh_global_settings_context  # noqa: E402
from prefect.logging.configuration import setup_logging  # noqa: E402

import coevo.configs.load.load  # noqa: E402, F401
from coevo.flows.servers import servers  # noqa: E402
from tests.support.migrated import copy_databases  # noqa: E402

copy_databases()
_use_prefect = servers.use_prefect


def read_settings():
    """Make Prefect read its settings from the environment, as its import does."""
    refresh_global_settings_context()
    setup_logging(incremental=False)


@functools.wraps(_use_prefect)
def use_prefect(workspace):
    url = _use_prefect(workspace)
    read_settings()
    return url


servers.use_prefect = use_prefect
