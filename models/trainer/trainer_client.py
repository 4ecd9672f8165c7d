"""The parent's side of the trainer: a child, or several that work as one, and a watchdog over them."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coevo.configs.update.update_config import DeepSpeedConfig, UpdateConfig
from coevo.models.trainer.samples import Scores, read_scores
from coevo.models.trainer.trainer_launch import TrainerRanks
from coevo.records.draws import Key
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import PlaceLostError

POLL_INTERVAL_S = 1.0
"""Seconds between two looks at the processes: the replies are those of process 0 alone."""


class TrainerError(CoevoError):
    """The trainer child failed, died, or was killed because it gave no answer."""


class TrainerLostError(TrainerError):
    """A process of the trainer ended on a cluster, with its node or by itself; ``restart`` may find another one."""


@contextmanager
def _told_as_lost() -> Iterator[None]:
    """Tell a place that is lost as a trainer that is lost."""
    try:
        yield
    except PlaceLostError as error:
        raise TrainerLostError(str(error)) from None


@dataclass(frozen=True, slots=True)
class UpdateReport:
    """Report of an update.

    Attributes:
        metrics: finite numbers by name; all except ``tokens_per_second`` are repeatable.
    """

    metrics: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """Directories that a trainer starts from.

    Attributes:
        policy: the policy to train.
        reference: the frozen policy that KL is measured against.
        optimizer: directory that ``save`` wrote; None starts afresh.
    """

    policy: Path
    reference: Path
    optimizer: Path | None = None


class Trainer:
    """A policy and its optimizer in their own processes; they end with their parent, however that ends.

    The child loads while the parent continues: only the first call waits for it.

    Args:
        config: loss, optimizer and DeepSpeed settings.
        start: policy, reference and optimizer.
        temperature: of the rollouts; divides the logits here as well.
        threads: CPU threads per tensor operation.
        log: file that the child's standard error is appended to.
        launch: starts the processes: ``TrainerRanks`` with its further arguments.

    Attributes:
        waited: seconds that the first call waited for the child to load.
    """

    def __init__(
        self,
        config: UpdateConfig,
        start: StartingPoint,
        *,
        temperature: float,
        threads: int,
        log: Path,
        launch: Callable[[DeepSpeedConfig, Path], TrainerRanks] = TrainerRanks,
    ) -> None:
        self._timeout, self._log, self._launch = config.deepspeed.timeout, log, launch
        self._config, self._temperature, self._threads = config, temperature, threads
        self.waited = 0.0
        self._begin(start)

    def restart(self, start: StartingPoint) -> None:
        """End the processes, and start others; the weights and the optimizer are those of ``start``."""
        self.close()
        self._begin(start)

    def _begin(self, start: StartingPoint) -> None:
        config, self._ready = self._config, False
        with _told_as_lost():
            self._launched = self._launch(config.deepspeed, self._log)
        try:
            with _told_as_lost():
                policy = self._launched.send(start.policy)
                reference = policy if start.reference == start.policy else self._launched.send(start.reference)
                optimizer = self._launched.send(start.optimizer) if start.optimizer else ""
            self._write(
                config=config.model_dump_json(),
                temperature=self._temperature,
                threads=self._threads,
                policy=policy,
                reference=reference,
                optimizer=optimizer,
            )
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Process id of the child, or of the first of several."""
        return self._launched.pid

    def wait(self) -> None:
        """Wait until the child has loaded policy and optimizer. Raises ``TrainerError``."""
        if not self._ready:
            since = time.monotonic()
            self._read("start")
            self._ready, self.waited = True, time.monotonic() - since

    def update(self, batch: Path, key: Key, answers: Path | None = None) -> UpdateReport:
        """Train on samples in ``batch`` (``coevo.models.trainer.samples``); ``key`` decides the order of minibatches.

        ``answers`` has those of the policy as writer, whose loss is added (RetroAgent Eq. 4).

        Raises:
            TrainerError: the update failed, or took longer than ``config.deepspeed.timeout`` and was killed.
        """
        sent = {"batch": batch} | ({} if answers is None else {"answers": answers})
        return UpdateReport(self._on({"answers": ""}, "update", sent, key_parts=list(key)))

    def update_critic(self, batch: Path, key: Key) -> UpdateReport:
        """Train only the critic on samples in ``batch``; the policy stays unchanged. Needs a critic."""
        return UpdateReport(self._on({}, "update_critic", {"batch": batch}, key_parts=list(key)))

    def score(self, batch: Path, into: Path) -> Scores:
        """Per-row inputs of advantages for the samples in ``batch`` (``coevo.models.trainer.samples.write_turns``).

        Reference log-probs if KL is in the reward, values with a critic. ``into`` is the file that carries them.

        Raises:
            TrainerError: it failed, or took longer than ``config.deepspeed.timeout`` and was killed.
        """
        name = self._launched.space(into)
        self._on({}, "score", {"batch": batch}, scores=name)
        with _told_as_lost():
            self._launched.fetch(name, into)
        return read_scores(into)

    def save(self, policy: Path, optimizer: Path) -> None:
        """Write the policy's directory and the optimizer's. Raises ``TrainerError``."""
        names = {path: self._launched.space(path) for path in (policy, optimizer)}
        self._call("save", policy=names[policy], optimizer=names[optimizer])
        with _told_as_lost():
            for path, name in names.items():
                self._launched.fetch(name, path)

    def close(self) -> None:
        """End the child."""
        self._launched.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _on(self, defaults: Mapping[str, str], method: str, files: Mapping[str, Path], **arguments: object) -> Any:
        """Call a method with files, whose copies are removed afterwards."""
        self.wait()
        with _told_as_lost():
            sent = {name: self._launched.send(path) for name, path in files.items()}
        result = self._call(method, **{**defaults, **sent}, **arguments)
        for name in sent.values():
            self._launched.forget(name)
        return result

    def _call(self, method: str, **arguments: object) -> Any:
        self.wait()
        self._write(method=method, **arguments)
        return self._read(method)

    def _write(self, **request: object) -> None:
        with suppress(BrokenPipeError):  # they have ended; the reply that comes next reports why
            self._launched.write(json.dumps(request).encode() + b"\n")

    def _read(self, method: str) -> Any:
        deadline = time.monotonic() + self._timeout
        while not (line := self._line(method, deadline)).startswith(b"{"):
            pass  # output of a library
        reply = json.loads(line)
        if "error" in reply:
            raise TrainerError(reply["error"])
        return reply["result"]

    def _line(self, method: str, deadline: float) -> bytes:
        while True:
            left = max(0.0, deadline - time.monotonic())
            line = self._launched.line(min(left, POLL_INTERVAL_S))
            if line is None:
                self._look(method, left)
            elif line.endswith(b"\n"):
                return line
            else:
                raise self._ended()

    def _ended(self) -> TrainerError:
        """Error about processes that have ended."""
        words, repeatable = self._launched.last_words()
        return TrainerLostError(words) if repeatable else TrainerError(words)

    def _look(self, method: str, left: float) -> None:
        """Give up where no answer can come: after the end of a process, or of ``left`` seconds."""
        if self._launched.ended():
            raise self._ended()
        if not left:
            self._launched.kill()
            raise TrainerError(
                f"the trainer's {method} took longer than update.deepspeed.timeout={self._timeout:g} s and was "
                f"killed: raise the timeout, or see {self._log}"
            )
