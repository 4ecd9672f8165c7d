"""Weights and tables that a run names by path: their digests belong to its identity, like its settings and its code.

Another model at the same path would continue the run from a base that its adapters were never trained on, or search its
bank in another embedding, without any other sign; another table would be other tasks. Digests of files are kept in
``weights.json`` of the workspace, by path, size, times and inode, so that a base model of many gigabytes is read once.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter

from coevo.configs.adapter_config import AdapterConfig
from coevo.configs.benchmark_config import BenchmarkConfig
from coevo.configs.env import EnvConfig, PluginEnvConfig
from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.configs.rows_config import RowsConfig
from coevo.configs.run_config import RunConfig
from coevo.envs.base import Environment
from coevo.envs.rows.task_table import load_table
from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.revision.code_version import flat
from coevo.lineage.revision.manifest import Manifest
from coevo.memory.retrieval.encoder import BUNDLED
from coevo.models.policy.foreign import folder_of
from coevo.utilities.errors import CoevoError

FILE = "weights.json"
WRITER_MODEL = "bank.writer.model.path"
"""Setting of a frozen writer's model."""
TABLE = "env.path"
"""Setting of a table of tasks, or of the folder that an environment reads its tasks from."""
ADAPTER_TABLE = "env.rows"
"""The same for environments of other libraries."""
DECIDING = frozenset({".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken"})
"""Suffixes of the files that a model, its tokenizer or its encoder is read from."""
KNOWN = TypeAdapter(dict[str, tuple[list[int], str]])
"""Size, times and inode of a file, and its digest, by path."""


def folders_of(config: RunConfig) -> dict[str, Path]:
    """Folder by setting, of every model that a run names by path and that is on this machine.

    A policy that is trained whole is in the lineage from revision 0 on; its path still names what the run began from.
    """
    found = {setting: folder_of(path) for setting, path in _named(config)}
    return {setting: folder for setting, folder in found.items() if folder is not None}


def digests(config: RunConfig, workspace: Path, env: Environment[object] | None = None) -> dict[str, str]:
    """SHA-256 (hex) by setting, of what a run names by path.

    That of a model is over names and content of its files, that of a table over its rows. With the environment, that
    of its data is among them.
    """
    known = _read(workspace / FILE)
    kept = dict(known)
    found = {setting: _digest(folder, kept) for setting, folder in folders_of(config).items()}
    if kept != known:
        with suppress(OSError):  # a workspace that is only read from
            write_atomically(workspace / FILE, json.dumps(kept, indent=1, sort_keys=True) + "\n", private=True)
    return found | tables(config) | ({} if env is None else data_of(config, env))


def tables(config: RunConfig) -> dict[str, str]:
    """SHA-256 (hex) of the rows of the run's table of tasks; empty if it has none."""
    if isinstance(config.env, RowsConfig):
        return {TABLE: load_table(config.env.path).digest}
    table = config.env.table if isinstance(config.env, AdapterConfig) else None
    return {} if table is None else {ADAPTER_TABLE: load_table(table).digest}


def data_of(config: RunConfig, env: Environment[object]) -> dict[str, str]:
    """SHA-256 (hex) by setting, of the version of an environment that reads its data from a folder of the user's."""
    return {TABLE: hashlib.sha256(env.version.encode()).hexdigest()} if _reads_files(config.env) else {}


def _reads_files(config: EnvConfig) -> bool:
    """True for a folder that a setting names, or a variable of the benchmark's; tables have digests of their rows."""
    if isinstance(config, RowsConfig | BenchmarkConfig):
        return isinstance(config, BenchmarkConfig)
    given = config.options if isinstance(config, PluginEnvConfig) else dict(config)
    return given.get("path") is not None or given.get("data") == "files" or given.get("games") == "official"


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Differences of digests, one line per setting; a setting that only one of both has agrees."""
    return [
        f"{_named_by(name)}: {before[name][:12]} -> {digest[:12]}"
        for name, digest in sorted(now.items())
        if before.get(name, digest) != digest
    ]


def _named_by(setting: str) -> str:
    data = setting in (TABLE, ADAPTER_TABLE)
    return f"data of {setting} (put the former files back)" if data else f"weights of {setting}"


def check_data(manifest: Manifest, config: RunConfig, env: Environment[object], name: str) -> None:
    """Check that an environment reads the data that a revision was made with.

    Raises:
        CoevoError: they have changed since.
    """
    _check(manifest.state.get("weights", {}), data_of(config, env), name)


def check_weights(manifest: Manifest, config: RunConfig, workspace: Path, name: str) -> None:
    """Check that the models that a revision opens by path are those that it was made with.

    Raises:
        CoevoError: one has changed since.
    """
    recorded: Mapping[str, str] = manifest.state.get("weights", {})
    if isinstance(config.policy, PretrainedPolicyConfig) and config.policy.lora is None:
        recorded = {setting: digest for setting, digest in recorded.items() if setting != "policy.path"}
    _check(recorded, digests(config, workspace) if recorded else {}, name)


def _check(recorded: Mapping[str, str], now: Mapping[str, str], name: str) -> None:
    if found := changed(recorded, now):
        raise CoevoError(
            f"{name} was made with other files than those at its paths now: {'; '.join(found)}; put the former files "
            "back, or continue the run with `coevo resume --accept-change`"
        )


def _named(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Settings that name a model, with their values; the bundled encoder is a pinned package."""
    for setting, value in flat(config.model_dump(mode="json")).items():
        encoder = setting.endswith(".encoder.model") or setting == "evaluation.encoder"
        if isinstance(value, str) and value != BUNDLED and (encoder or setting in ("policy.path", WRITER_MODEL)):
            yield setting, value


def _digest(folder: Path, kept: dict[str, tuple[list[int], str]]) -> str:
    total = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in DECIDING and path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not any(part.startswith(".") for part in Path(name).parts):
            total.update(f"{_file_digest(path, kept)} {json.dumps(name)}\n".encode())
    return total.hexdigest()


def _file_digest(path: Path, kept: dict[str, tuple[list[int], str]]) -> str:
    with path.open("rb") as file:
        status = path.stat()
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_dev]
        resolved = str(path.resolve())
        if resolved not in kept or list(kept[resolved][0]) != stamp:
            kept[resolved] = stamp, hashlib.file_digest(file, "sha256").hexdigest()
    return kept[resolved][1]


def _read(file: Path) -> dict[str, tuple[list[int], str]]:
    try:
        return KNOWN.validate_json(file.read_bytes())
    except (OSError, ValueError):  # it is made again
        return {}
