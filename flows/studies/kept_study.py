"""The kept file of a study that is decided: frozen design, block of reserved worlds, results as they come, and notes.

The file is written after each run, and a run that it holds is not played again, on this machine or another. What was
done after results had been seen is in its notes, which this module writes: it compares the study with what was frozen.
"""

import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from coevo.configs.load.load_study import stored_study
from coevo.configs.load.shipped_files import shipped
from coevo.configs.run_config import digest
from coevo.configs.study_config import StudyConfig
from coevo.flows.studies.outcome import Outcome
from coevo.flows.studies.result import StudyResult, compared
from coevo.flows.studies.study_runs import StudyRun, configured_arm, runs_of
from coevo.lineage.atomic_files import write_atomically
from coevo.lineage.git import commit_of
from coevo.lineage.revision.code_version import code_revision, packages
from coevo.tasks.cost import Spent
from coevo.utilities.errors import CoevoError

RESULT = ("study", "block", "frozen", "notes", "summary", "standing", "missing", "rows", "runs")
"""Keys of a result, newest first in the file; ``earlier`` has those of other blocks."""
NO_CLAIM = {"name", "settings", "seeds", "minutes", "recipe", "needs", "arms", "figure"}
"""Fields of a study that are no claim; of the arms, their claims count."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """A design as it was before its first run.

    Attributes:
        commit: commit of the study's file; None where it was not committed as it is.
        seeds: number of worlds.
        claims: hash of finding, metrics and expectations.
        arms: hash of the configuration of each arm, without seed and world.
    """

    commit: str | None
    seeds: int
    claims: str
    arms: Mapping[str, str]


@dataclass
class KeptStudy:
    """The kept file of a study."""

    path: Path
    study: StudyConfig
    document: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def begun(cls, study: StudyConfig, folder: Path) -> "KeptStudy":
        """The file of a study in a folder: as it was left, or with a note of what changed in its design.

        Where settings changed after results had been seen, the next block is opened, and the earlier result stays.

        Raises:
            CoevoError: the file cannot be read, or an arm is not possible.
        """
        path = folder / f"{study.name}.json"
        kept = cls(path, study, _read(path))
        kept._begin(_design(study))
        return kept

    @classmethod
    def of(cls, study: StudyConfig, folder: Path) -> "KeptStudy":
        """The file of a study in a folder, to be read alone.

        Raises:
            CoevoError: there is none, or it holds another design.
        """
        path = folder / f"{study.name}.json"
        found = _read(path)
        if "frozen" not in found or list(_changes(Frozen(**found["frozen"]), _design(study))):
            raise CoevoError(f"{path} has no result of this study as it is: play it first, without --show")
        return cls(path, study, found)

    @property
    def runs(self) -> list[StudyRun]:
        """All runs of the study in its block."""
        return runs_of(self.study, self.document["block"])

    def outcomes(self) -> dict[str, Outcome]:
        """Outcomes that the file holds, by run."""
        return {each.run: each for each in _outcomes(self.document["runs"], self.study)}

    def add(self, outcome: Outcome) -> None:
        """Add the outcome of a run, with code and machine, and write the file."""
        values = zip((metric.key for metric in self.study.metrics), outcome.values, strict=True)
        found = asdict(outcome) | {"values": {key: value for key, value in values if value is not None}}
        self.document["runs"].append(found | {"measured_on": measured_on()})
        self.write()

    def result(self) -> StudyResult:
        """Result of the runs that the file holds."""
        known = self.outcomes()
        return compared(self.study, [known[each.name] for each in self.runs if each.name in known])

    def write(self) -> None:
        """Write the file, with the result of its runs."""
        runs = self.document["runs"]
        self.document |= self.result().document() | {"runs": runs}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        ordered = {key: self.document[key] for key in (*RESULT, "earlier")}
        write_atomically(self.path, json.dumps(ordered, indent=1) + "\n")

    def _begin(self, design: Frozen) -> None:
        if "frozen" not in self.document:  # none yet, or one of before there were blocks
            self._open(design, f"replaced at {_at(design)}: it was not played in reserved worlds")
            return
        frozen = Frozen(**self.document["frozen"])
        changes, seen = list(_changes(frozen, design)), len(self.document["runs"])
        if changes and not seen:
            self.document["frozen"] = asdict(design)
        elif frozen.arms != design.arms or self._has_other_metrics() or design.seeds < frozen.seeds:
            self._open(design, f"replaced at {_at(design)}, after {seen} runs: {'; '.join(changes)}")
        elif changes:
            self.document["notes"] += [f"after {seen} runs had been seen, at {_at(design)}: {each}" for each in changes]
            self.document["frozen"] = asdict(design)
        self.write()

    def _has_other_metrics(self) -> bool:
        return bool(self.document["study"]["metrics"] != [each.model_dump(mode="json") for each in self.study.metrics])

    def _open(self, design: Frozen, why: str) -> None:
        """Open the next block, and move an earlier result aside."""
        earlier = list(self.document.get("earlier", []))
        if self.document.get("runs"):
            earlier.insert(0, {key: self.document[key] for key in RESULT if key in self.document} | {"replaced": why})
        block = next_block(self.path.parent)
        notes = [] if design.commit else ["the design was not committed before its first run"]
        self.document = {"block": block, "frozen": asdict(design), "notes": notes, "runs": [], "earlier": earlier}
        self.write()


def shown_of(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Result to show of a kept file: the present one, or the latest earlier one as long as no run of it has come."""
    return document if document["runs"] else next(iter(document.get("earlier", [])), document)


def result_in(document: Mapping[str, Any]) -> StudyResult:
    """Result that a kept document holds, of reserved worlds or of an earlier design."""
    study = stored_study(document["study"], str(document["study"].get("name")))
    return compared(study, list(_outcomes(document["runs"], study)))


def _outcomes(runs: Sequence[Mapping[str, Any]], study: StudyConfig) -> Iterator[Outcome]:
    for run in runs:
        values = tuple(run["values"].get(metric.key) for metric in study.metrics)
        curve = tuple(tuple(point) for point in run.get("curve", ()))
        lacks, spent = dict(run.get("lacks", {})), Spent(**run["spent"])
        yield Outcome(run["run"], run["arm"], run["seed"], values, spent, run["ended"], lacks, curve)


def next_block(folder: Path) -> int:
    """The first block that no study of a folder has opened."""
    opened = [
        each["block"]
        for path in folder.glob("*.json")
        for document in [_read(path)]
        for each in (document, *document.get("earlier", []))
        if "block" in each
    ]
    return 1 + max(opened, default=-1)


def measured_on() -> dict[str, object]:
    """Code, versions and machine that a result depends on."""
    versions = packages()
    return {
        "code": code_revision()[:12],
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "torch": versions["torch"],
        "transformers": versions["transformers"],
    }


def _at(design: Frozen) -> str:
    return f"commit {design.commit}" if design.commit else "an uncommitted state"


def _changes(frozen: Frozen, design: Frozen) -> Iterator[str]:
    """Differences from the frozen design, one line each."""
    if frozen.seeds != design.seeds:
        yield f"{design.seeds} worlds instead of {frozen.seeds}"
    if frozen.claims != design.claims:
        yield "finding, metrics or expectations changed"
    for arm in sorted(frozen.arms.keys() | design.arms.keys()):
        before, after = frozen.arms.get(arm), design.arms.get(arm)
        if before != after:
            change = "was added" if before is None else "was left out" if after is None else "has other settings"
            yield f"arm {arm} {change}"


def _design(study: StudyConfig) -> Frozen:
    described = study.model_dump(mode="json")
    claims = {key: value for key, value in described.items() if key not in NO_CLAIM}
    expected = [(arm.name, arm.expected) for arm in study.arms]
    arms = {
        arm.name: digest(
            [
                configured_arm(study, arm).model_dump(mode="json"),
                None if arm.matches is None else arm.matches.model_dump(),
            ]
        )
        for arm in study.arms
    }
    path = shipped("studies").get(study.name)
    return Frozen(None if path is None else commit_of(path), study.seeds, digest([claims, expected]), arms)


def _read(path: Path) -> dict[str, Any]:
    """Content of a kept file; empty if there is none."""
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise CoevoError(f"{path} is no kept result of a study: {error}; move it away") from None
