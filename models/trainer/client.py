"""The parent's side of the trainer child: one process a run, and a watchdog over it."""

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from configs.errors import CoevoError
from configs.update import UpdateConfig
from models.samples import Scores, read_scores
from records.draws import Key


class TrainerError(CoevoError):
    """The trainer child failed, died, or was killed because it kept silent."""


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """What an update did.

    Attributes:
        metrics: finite numbers by name; all but ``tokens_per_second`` are repeatable.
    """

    metrics: Mapping[str, float]


class Trainer:
    """A policy and its optimizer in a process of their own; ends with its parent, whatever ends that.

    The child loads while the parent goes on: only the first call waits for it.

    Args:
        config: loss, optimizer and DeepSpeed settings.
        temperature: of the rollouts; divides the logits here as well.
        threads: CPU threads of one tensor operation.
        policy: directory of the policy to train.
        reference: directory of the frozen policy that KL is measured against.
        optimizer: directory that ``save`` wrote; none starts afresh.
        log: file that the child's standard error is appended to.
    """

    def __init__(
        self,
        config: UpdateConfig,
        *,
        temperature: float,
        threads: int,
        policy: Path,
        reference: Path,
        optimizer: Path | None,
        log: Path,
    ) -> None:
        self._timeout = config.deepspeed.timeout
        self._log = log
        self._ready = False
        self._logged = log.stat().st_size if log.exists() else 0
        self._process = _spawn(log)
        self._write(
            config=config.model_dump_json(),
            temperature=temperature,
            threads=threads,
            policy=str(policy.absolute()),
            reference=str(reference.absolute()),
            optimizer=str(optimizer.absolute()) if optimizer else "",
        )

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def update(self, batch: Path, key: Key) -> UpdateReport:
        """Train on the samples in ``batch`` (see ``models.samples``); ``key`` decides the order of minibatches.

        Raises:
            TrainerError: the update failed, or took longer than ``config.deepspeed.timeout`` and was killed.
        """
        return UpdateReport(self._call("update", batch=str(batch.absolute()), key_parts=list(key)))

    def update_critic(self, batch: Path, key: Key) -> UpdateReport:
        """The same of the critic alone: the policy stays as it is. Only with a critic."""
        return UpdateReport(self._call("update_critic", batch=str(batch.absolute()), key_parts=list(key)))

    def score(self, batch: Path, into: Path) -> Scores:
        """What advantages need to know of the samples in ``batch`` (``models.samples.write_turns``), row by row.

        Reference log-probs where KL is in the reward, values where there is a critic. ``into`` is the file they
        travel in.

        Raises:
            TrainerError: it failed, or took longer than ``config.deepspeed.timeout`` and was killed.
        """
        self._call("score", batch=str(batch.absolute()), scores=str(into.absolute()))
        return read_scores(into)

    def save(self, policy: Path, optimizer: Path) -> None:
        """Write the policy's directory and the optimizer's. Raises ``TrainerError``."""
        self._call("save", policy=str(policy.absolute()), optimizer=str(optimizer.absolute()))

    def close(self) -> None:
        """End the child."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _call(self, method: str, **arguments: object) -> Any:
        if not self._ready:
            self._read("start")
            self._ready = True
        self._write(method=method, **arguments)
        return self._read(method)

    def _write(self, **request: object) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            raise self._dead() from None

    def _read(self, method: str) -> Any:
        assert self._process.stdout is not None
        descriptor, deadline, line = self._process.stdout.fileno(), time.monotonic() + self._timeout, b""
        while not line.endswith(b"\n"):
            if not select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self._process.kill()
                raise TrainerError(
                    f"the trainer's {method} took longer than update.deepspeed.timeout={self._timeout:g} s and was "
                    f"killed: raise the timeout, or see {self._log}"
                )
            part = os.read(descriptor, 65536)
            if not part:
                raise self._dead()
            line += part
        reply = json.loads(line)
        if "error" in reply:
            raise TrainerError(reply["error"])
        return reply["result"]

    def _dead(self) -> TrainerError:
        status = self._process.wait()
        written = self._log.read_bytes()[self._logged :].decode(errors="replace")
        last = (written.strip() or "it wrote nothing").splitlines()[-1]
        return TrainerError(f"the trainer died (exit status {status}): {last}; see {self._log}")


def _spawn(log: Path) -> subprocess.Popen[bytes]:
    """The child, importing from where this process does, whatever the working directory holds."""
    paths = os.pathsep.join(path for path in sys.path if path)
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "models.trainer.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": paths, "DS_ACCELERATOR": "cpu"},
            start_new_session=True,  # Ctrl-C is for the parent, which may want to finish what it does
        )
