"""Data published of one revision: the manifest, its bank and the previous bank, and its episodes."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from coevo.configs.run_config import digest
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.status import RunStatus, iteration_stage
from coevo.memory.bank.change import Judged
from coevo.memory.bank.content_hash import content_hash
from coevo.records.arrow import entries_to_table
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.tasks.cost import wall_seconds

INCIDENTAL = ("seed", "iterations", "recipe")
"""Settings that may differ between runs of one ``coevo.setting``."""


@dataclass(frozen=True)
class Publication:
    """One committed revision to publish.

    Attributes:
        manifest: manifest of the revision.
        commit: hash of its lineage commit.
        entries: bank of the revision; None if it is no longer kept.
        before: bank of the previous revision; None if missing or no longer kept.
        episodes: training episodes; empty if no longer kept.
        judged: judged batches of candidates, if available.
        alarms: lines about what keeps it from learning.
    """

    manifest: Manifest
    commit: str
    entries: Sequence[Entry] | None
    before: Sequence[Entry] | None = None
    episodes: Sequence[Episode] = ()
    judged: Sequence[Judged] = ()
    alarms: Sequence[str] = ()

    @property
    def revision(self) -> int:
        """Number of the revision."""
        return self.manifest.revision

    @property
    def timestamp(self) -> int:
        """Time of the commit, in ms since 1970."""
        return int(self.manifest.observed["timestamp"])

    @property
    def began(self) -> int:
        """Time at which the work on the revision began, in ms since 1970."""
        return self.timestamp - round(wall_seconds(self.manifest) * 1000)

    @property
    def evaluated(self) -> bool:
        """Report whether held-out panels were played; pictures, checkpoint and traces are published only then."""
        return bool(self.manifest.state["panels"])


def figures(manifest: Manifest) -> dict[str, float]:
    """All metrics of a revision that are published as points."""
    return {**manifest.metrics, **manifest.rates}


def tags_of(publication: Publication) -> dict[str, str]:
    """Tags that describe the last published revision of a run."""
    manifest, state = publication.manifest, publication.manifest.state
    return {
        "coevo.revision": str(manifest.revision),
        "coevo.commit": publication.commit,
        "coevo.parent": str(manifest.parent),
        "coevo.config": state["config_hash"],
        **status_tags(RunStatus("running", iteration_stage(manifest.iteration + 1, state["config"]))),
        **_branch_tag(manifest),
        **_bank_tag(publication.entries),
        **{f"coevo.panel.{name}": value for name, value in state["panels"].items()},
    }


def status_tags(status: RunStatus) -> dict[str, str]:
    """Tags of a run's status; an empty one where it has no stage or reason."""
    return {f"coevo.{name}": value or "" for name, value in asdict(status).items()}


def _branch_tag(manifest: Manifest) -> dict[str, str]:
    origin = manifest.observed.get("branched_from")
    return {} if origin is None else {"coevo.branched_from": f"{origin['run']}@{origin['revision']}"}


def identity(config: Mapping[str, Any], env: str) -> dict[str, str]:
    """Tags that identify and group runs: method, environment, seed, and a hash of all other settings."""
    setting = {name: value for name, value in config.items() if name not in INCIDENTAL}
    return {
        "coevo.method": str(config["recipe"]).removeprefix(f"{env}-"),
        "coevo.env": env,
        "coevo.seed": str(config["seed"]),
        "coevo.setting": digest(setting)[:12],
    }


def _bank_tag(entries: Sequence[Entry] | None) -> dict[str, str]:
    if entries is None:
        return {}
    return {"coevo.bank": content_hash(entries_to_table(entries))}
