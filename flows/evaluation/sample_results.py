"""Results of ``coevo evaluate`` with samples: a row per episode with all its turns, and figures over tasks.

``FILE.jsonl.partial`` is only appended to: a line that says what is evaluated, then a line per episode, on the disk
before the next one is noted. A killed evaluation continues with what is missing. Once all are there, ``FILE.jsonl``
holds them in the order of tasks, replicas and banks, whatever the order in which they ended, and ``FILE.json`` says
what was evaluated, and the figures. ``FILE.jsonl.calls`` holds the paid answers of an endpoint until then.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from pathlib import Path
from statistics import fmean
from typing import Any, BinaryIO, NamedTuple

from coevo.lineage.atomic_files import locked_alone, write_atomically
from coevo.lineage.revision.code_version import flat
from coevo.records.answer_faults import Fault
from coevo.records.episode import Episode, Turn
from coevo.records.intervals import of_share, paired_success
from coevo.utilities.errors import CoevoError

MAX_SHOWN_CHARS = 60
"""Characters of a setting in a message."""


class EpisodeKey(NamedTuple):
    """Which episode of an evaluation: bank, id of the task, replica."""

    bank: str
    task: str
    replica: int


@dataclass(frozen=True, slots=True)
class EpisodeSummary:
    """Facts of an episode that figures need.

    Attributes:
        success: the environment's own criterion.
        reward: undiscounted extrinsic return.
        tokens: tokens of its answers.
        lost: True if the environment failed; such an episode is in no figure.
        offset: place of its line in the file.
        size: bytes of the line.
    """

    success: bool
    reward: float
    tokens: int
    lost: bool
    offset: int = 0
    size: int = 0


def episode_row(bank: str, episode: Episode, lessons: Mapping[str, str], decode: Any) -> dict[str, Any]:
    """An episode as JSON values, with every turn.

    Args:
        bank: name of the bank that it was played with.
        episode: the episode.
        lessons: texts of entries by id.
        decode: function from token ids to text; None if turns have no ids.
    """
    task = episode.task
    return {
        "bank": bank,
        "task": task.id,
        "replica": episode.replica,
        "kind": task.kind,
        "scope": task.scope,
        "instruction": task.instruction,
        "success": episode.success,
        "reward": episode.reward,
        "truncated": episode.truncated,
        "progress": episode.progress,
        "cut": episode.cut,
        "lost": episode.lost,
        "tokens": sum(len(turn.completion.token_ids) for turn in episode.turns),
        "turns": [_turn_row(number, turn, lessons, decode) for number, turn in enumerate(episode.turns)],
    }


def _turn_row(number: int, turn: Turn, lessons: Mapping[str, str], decode: Any) -> dict[str, Any]:
    prompt = list(turn.prompt_ids)
    return {
        "turn": number,
        "observation": turn.observation,
        "prompt": decode(prompt) if prompt and decode else "",
        "prompt_ids": prompt,
        "lessons": [{"id": name, "text": lessons.get(name, "")} for name in turn.retrieved],
        "answer": turn.completion.text,
        "token_ids": list(turn.completion.token_ids),
        "finished": turn.completion.finished,
        "action": turn.action,
        "no_action": str(turn.fault or ("" if turn.action else Fault.NO_ACTION)),
        "feedback": turn.feedback,
        "valid": turn.valid,
        "reward": turn.reward,
        "scores": dict(turn.scores),
    }


class ResultFile:
    """The episodes of an evaluation that have ended, on the disk if it has a file.

    Attributes:
        ended: summaries by key.
    """

    def __init__(self, path: Path | None, question: Mapping[str, Any]) -> None:
        self.ended: dict[EpisodeKey, EpisodeSummary] = {}
        self._path = path
        self._question = question
        self._log: BinaryIO | None = None

    def add(self, row: Mapping[str, Any]) -> None:
        """Keep an episode: it is on the disk when this returns.

        Raises:
            CoevoError: it has a number that is none, or is infinite, which JSON cannot hold.
        """
        try:
            written = json.dumps(row, ensure_ascii=False, allow_nan=False)
        except ValueError:
            raise CoevoError(
                f"task {row['task']}: the environment gave a number that is not finite (reward {row['reward']}): "
                "correct it, then continue with --resume"
            ) from None
        offset, line = 0, f"{written}\n".encode(errors="replace")
        if self._log is not None:
            offset = self._log.seek(0, os.SEEK_END)
            self._log.write(line)
            self._log.flush()
            os.fsync(self._log.fileno())
        self._note(row, offset, len(line))

    def finish(self, order: Sequence[EpisodeKey], figures: Mapping[str, Any]) -> None:
        """Write all episodes in this order, and what the evaluation found."""
        if self._path is None or self._log is None:
            return
        fresh = self._path.with_name(f".{self._path.name}.new")
        with fresh.open("wb") as file:
            for key in order:
                self._log.seek(self.ended[key].offset)
                file.write(self._log.read(self.ended[key].size))
            file.flush()
            os.fsync(file.fileno())
        write_atomically(_summary(self._path), json.dumps({**self._question, **figures}, indent=1) + "\n")
        fresh.replace(self._path)
        _partial(self._path).unlink(missing_ok=True)
        shutil.rmtree(calls_beside(self._path), ignore_errors=True)

    @contextmanager
    def opened(self, resume: bool) -> Iterator["ResultFile"]:
        """Take the files for the block.

        Args:
            resume: True to continue what an earlier process began, if there is something.

        Raises:
            CoevoError: there is something and it may not be continued, belongs to another evaluation, is damaged, or
                is in use.
        """
        if self._path is None:
            yield self
            return
        path, partial = self._path, _partial(self._path)
        there = next((each for each in (path, partial, calls_beside(path)) if each.exists()), None)
        if not resume and there is not None:
            raise CoevoError(f"{there} is already there: continue it with --resume, or name another file")
        if not path.exists() and os.path.lexists(_summary(path)) and not self._is_own(_summary(path)):
            raise CoevoError(
                f"{_summary(path)} is already there, and the figures are written into it: name another file than {path}"
            )
        complete = path.exists()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            log = path.open("rb+") if complete else partial.open("ab+")
        except OSError as error:
            raise CoevoError(f"{path}: {error.strerror}: name a file that can be written") from None
        with log as self._log:
            _take(log, path)
            self._read_back(complete)
            yield self
        self._log = None

    def _is_own(self, summary: Path) -> bool:
        """True for the figures of this evaluation, which a kill can leave without their episodes."""
        try:
            found = json.loads(summary.read_bytes())
        except (OSError, ValueError, RecursionError):
            return False
        asked = json.loads(json.dumps(self._question))
        return isinstance(found, dict) and {name: found.get(name) for name in asked} == asked

    def _read_back(self, complete: bool) -> None:
        """Read the episodes that are kept; a last line without its end was cut off by the death of its process."""
        assert self._log is not None
        assert self._path is not None
        self._log.seek(0)
        begun, place = _begun(self._path) if complete else None, 0
        for line in iter(self._log.readline, b""):
            if not line.endswith(b"\n"):
                break
            if begun is None:
                begun = _object(line, self._path)
            else:
                self._note(_object(line, self._path), place, len(line))
            place += len(line)
        if begun is not None:
            _check_same(self._path, begun, self._question)
            self._log.truncate(place)
            return
        self._log.truncate(0)
        self._log.write(f"{json.dumps(self._question)}\n".encode())
        self._log.flush()
        os.fsync(self._log.fileno())

    def _note(self, row: Mapping[str, Any], offset: int, size: int) -> None:
        try:
            key = EpisodeKey(str(row["bank"]), str(row["task"]), int(row["replica"]))
            figures = bool(row["success"]), float(row["reward"]), int(row["tokens"]), bool(row["lost"])
        except (KeyError, TypeError, ValueError, OverflowError):
            raise CoevoError(f"{self._path}: a line is no episode: remove the file, and begin anew") from None
        self.ended[key] = EpisodeSummary(*figures, offset, size)


def _partial(path: Path) -> Path:
    return path.with_name(f"{path.name}.partial")


def calls_beside(path: Path) -> Path:
    """Directory of the calls to an endpoint whose answers a file of results holds."""
    return path.with_name(f"{path.name}.calls")


def _summary(path: Path) -> Path:
    return path.with_suffix(".json")


def _begun(path: Path) -> dict[str, Any]:
    """Read what a finished file holds the results of. Raises ``CoevoError`` if nothing says so."""
    try:
        return _object(_summary(path).read_bytes(), path)
    except OSError:
        raise CoevoError(
            f"{path} is no file of results, or {_summary(path).name} is gone from beside it: name another file"
        ) from None


def _take(file: BinaryIO, path: Path) -> None:
    if not locked_alone(file, path):
        raise CoevoError(f"{path}: another process evaluates into it: wait for it, or name another file")


def _object(line: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CoevoError(f"{path}: a line is damaged: remove the file, and begin anew")
    return found


def _check_same(path: Path, begun: Mapping[str, Any], question: Mapping[str, Any]) -> None:
    """Check that an evaluation asks what the kept one did. Raises ``CoevoError`` with the first difference."""
    old, new = flat({name: begun.get(name) for name in question}), flat(json.loads(json.dumps(question)))
    for name in sorted(old.keys() | new.keys()):
        if old.get(name) != new.get(name):
            before, now = (str(each.get(name))[:MAX_SHOWN_CHARS] for each in (old, new))
            raise CoevoError(
                f"{path} was begun with {name} = {before}, and now it is {now}: evaluate as before, or into another "
                "file"
            )


def pass_at(samples: int, successes: int, k: int) -> float:
    """Probability that k of the samples, drawn without replacement, hold a success: the unbiased estimate of pass@k."""
    return 1 - comb(samples - successes, k) / comb(samples, k)


def figures_of(
    ended: Mapping[EpisodeKey, EpisodeSummary], banks: Sequence[str], tasks: Sequence[str], samples: int
) -> dict[str, Any]:
    """Figures by bank, and paired differences of the first bank from each of the others.

    Rates are means over tasks, with Wilson's 95 % interval over tasks, which is rather too wide for a mean of several
    samples. A lost episode is in no figure: pass@k is over the tasks that have k others.
    """
    found = {bank: _of_bank(ended, bank, tasks, samples) for bank in banks}
    rates = {bank: _rates(ended, bank, tasks, samples) for bank in banks}
    first, *others = banks
    differences = []
    for other in others:
        both = [task for task in tasks if task in rates[first] and task in rates[other]]
        if len(both) > 1:
            gain = paired_success([rates[first][task] for task in both], [rates[other][task] for task in both])
            row = {"bank": first, "against": other, "tasks": len(both), "difference": gain.mean}
            differences.append(row | {"low": gain.low, "high": gain.high})
    return {"figures": found, "differences": differences}


def _counts(
    ended: Mapping[EpisodeKey, EpisodeSummary], bank: str, tasks: Sequence[str], samples: int
) -> dict[str, list[EpisodeSummary]]:
    """Episodes of each task that the environment did not lose; tasks without any are left out."""
    keys = {task: [EpisodeKey(bank, task, replica) for replica in range(samples)] for task in tasks}
    found = {task: [ended[key] for key in own if key in ended and not ended[key].lost] for task, own in keys.items()}
    return {task: episodes for task, episodes in found.items() if episodes}


def _rates(
    ended: Mapping[EpisodeKey, EpisodeSummary], bank: str, tasks: Sequence[str], samples: int
) -> dict[str, float]:
    counts = _counts(ended, bank, tasks, samples)
    return {task: fmean(each.success for each in episodes) for task, episodes in counts.items()}


def _of_bank(
    ended: Mapping[EpisodeKey, EpisodeSummary], bank: str, tasks: Sequence[str], samples: int
) -> dict[str, Any]:
    counts = _counts(ended, bank, tasks, samples)
    episodes = [each for own in counts.values() for each in own]
    row: dict[str, Any] = {
        "tasks": len(tasks),
        "samples": samples,
        "lost": len(tasks) * samples - len(episodes),
        "avg": _interval([fmean(each.success for each in own) for own in counts.values()]),
        "pass": {},
        "reward": fmean(each.reward for each in episodes) if episodes else None,
        "tokens": sum(each.tokens for each in episodes) or None,  # a served agent tells none
    }
    for k in range(1, samples + 1):
        whole = [own for own in counts.values() if len(own) >= k]
        row["pass"][str(k)] = _interval([pass_at(len(own), sum(each.success for each in own), k) for own in whole])
    return row


def _interval(shares: Sequence[float]) -> dict[str, float] | None:
    if not shares:
        return None
    found = of_share(fmean(shares), len(shares))
    return {"mean": found.mean, "low": found.low, "high": found.high}
