"""A policy in a process of its own, so that this one never holds it: ``python -m coevo.models.policy.apart DIRECTORY``.

The request is one JSON object on standard input; the process builds the policy, saves it and ends.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from pydantic import TypeAdapter

from coevo.configs.policy_config import PolicyConfig
from coevo.models.policy.policy import build, save
from coevo.records.draws import Key, key
from coevo.utilities.errors import CoevoError


def build_apart(config: PolicyConfig, vocabulary: Sequence[str], draws: Key, threads: int, directory: Path) -> None:
    """Build and save the policy that a configuration describes.

    Args:
        config: the policy.
        vocabulary: words of a new one.
        draws: decide all new weights.
        threads: CPU threads per tensor operation.
        directory: target directory.

    Raises:
        CoevoError: as ``build``, or the process failed.
    """
    settings = config.model_dump_json()
    asked = {"policy": settings, "vocabulary": list(vocabulary), "key": list(draws), "threads": threads}
    run_apart(__name__, str(directory), text=json.dumps(asked))


def run_apart(module: str, *arguments: str, text: str = "") -> str:
    """Run a module in a process of its own; return its standard output.

    Args:
        module: its name.
        arguments: of the command line.
        text: standard input.

    Raises:
        CoevoError: the process failed; its last line says why.
    """
    line = [sys.executable, "-P", "-m", module, *arguments]
    done = subprocess.run(line, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stderr.strip().splitlines() or [f"{module} ended with {done.returncode}"])[-1].split())
        raise CoevoError(said.removeprefix("coevo.utilities.errors.CoevoError: "))
    return done.stdout


def main(directory: str) -> None:
    """Build the policy that standard input asks for, in a directory."""
    asked = json.load(sys.stdin)
    torch.set_num_threads(asked["threads"])
    config: PolicyConfig = TypeAdapter(PolicyConfig).validate_json(asked["policy"])
    save(build(config, asked["vocabulary"], key(*asked["key"])), Path(directory))


if __name__ == "__main__":
    main(*sys.argv[1:])
