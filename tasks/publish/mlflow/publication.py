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
from coevo.tasks.pending_revision import HeldOutEpisode

INCIDENTAL = ("seed", "iterations", "recipe")
"""Settings that may differ between runs of one ``coevo.setting``."""


OVERVIEW = "Overview"
"""First section of charts: MLflow sorts sections, and charts within one, by the codes of their letters."""
SHOWN_DIGITS = 12
"""Digits of a hash in a tag: it says whether something changed, and is read by people."""
BINS = "_histogram/"
"""Part of the names of a distribution's bins, which are pictures instead of points."""


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
        held_out: held-out episodes that the revision keeps; empty if they are no longer kept.
    """

    manifest: Manifest
    commit: str
    entries: Sequence[Entry] | None
    before: Sequence[Entry] | None = None
    episodes: Sequence[Episode] = ()
    judged: Sequence[Judged] = ()
    alarms: Sequence[str] = ()
    held_out: Sequence[HeldOutEpisode] = ()

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
    """All metrics of a revision."""
    return {**manifest.metrics, **manifest.rates}


def points(manifest: Manifest) -> dict[str, float]:
    """Figures of a revision that MLflow gets as points: ``OVERVIEW`` repeats those that are read first."""
    values = figures(manifest)
    first = {"Success": success_name(manifest), "bank size": "bank/size", "training success": "agent/success/train"}
    overview = {f"{OVERVIEW}/{name}": values[source] for name, source in first.items() if source in values}
    return overview | {name: value for name, value in values.items() if BINS not in name}


def success_name(manifest: Manifest) -> str:
    """Metric of the success on the run's first panel; training success if it has none."""
    return f"agent/success/{next(iter(manifest.state['config']['evaluation']['panels']), 'train')}"


def tags_of(publication: Publication) -> dict[str, str]:
    """Tags that describe the last published revision of a run."""
    manifest, state = publication.manifest, publication.manifest.state
    return {
        "coevo.revision": str(manifest.revision),
        "coevo.commit": publication.commit,
        "coevo.parent": str(manifest.parent),
        "coevo.config": state["config_hash"][:SHOWN_DIGITS],
        **status_tags(RunStatus("running", iteration_stage(manifest.iteration + 1, state["config"]))),
        **_branch_tag(manifest),
        **_bank_tag(publication.entries),
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
        "coevo.setting": digest(setting)[:SHOWN_DIGITS],
    }


def _bank_tag(entries: Sequence[Entry] | None) -> dict[str, str]:
    if entries is None:
        return {}
    return {"coevo.bank": content_hash(entries_to_table(entries))[:SHOWN_DIGITS]}
