"""What is published of one revision: the manifest, its bank and the bank before, and the episodes it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from configs.run import digest
from memory.canonical import content_hash
from memory.change import Judged
from records.arrow import entries_to_table
from records.entry import Entry
from records.episode import Episode

INCIDENTAL = ("seed", "iterations", "recipe")
"""Settings in which runs of one setting may differ."""


class Committed(Protocol):
    """What publishing needs of a manifest."""

    @property
    def state(self) -> Mapping[str, Any]:
        """``revision``, ``parent``, ``config``, ``config_hash``, ``panels`` and ``metrics``."""

    @property
    def observed(self) -> Mapping[str, Any]:
        """``timestamp`` in ms since 1970, and ``metrics`` that are times or rates."""


@dataclass(frozen=True)
class Publication:
    """One committed revision as it is published.

    Attributes:
        manifest: of the revision.
        commit: hash of its lineage commit.
        entries: the bank of the revision; None where it is not kept any more.
        before: the bank of the revision before; None where there is none, or it is not kept any more.
        episodes: what was played in training; empty where it is not kept any more.
        judged: candidates and what replay said of them, where that is at hand.
    """

    manifest: Committed
    commit: str
    entries: Sequence[Entry] | None
    before: Sequence[Entry] | None = None
    episodes: Sequence[Episode] = ()
    judged: Sequence[Judged] = ()

    @property
    def revision(self) -> int:
        """Its number."""
        return int(self.manifest.state["revision"])

    @property
    def timestamp(self) -> int:
        """When it was committed, ms since 1970."""
        return int(self.manifest.observed["timestamp"])

    @property
    def evaluated(self) -> bool:
        """Whether held-out panels were played: then pictures, a checkpoint and sample episodes are worth their time."""
        return bool(self.manifest.state["panels"])


def figures(manifest: Committed) -> dict[str, float]:
    """All that is published of a revision as points."""
    return {**manifest.state["metrics"], **manifest.observed.get("metrics", {})}


def tags_of(publication: Publication) -> dict[str, str]:
    """What tells the last published revision of a run."""
    state = publication.manifest.state
    return {
        "coevo.revision": str(state["revision"]),
        "coevo.commit": publication.commit,
        "coevo.parent": str(state["parent"]),
        "coevo.config": state["config_hash"],
        **_bank_tag(publication.entries),
        **{f"coevo.panel.{name}": value for name, value in state["panels"].items()},
    }


def identity(config: Mapping[str, Any], env: str) -> dict[str, str]:
    """What tells runs apart and groups them: the method, the environment, the seed, and all else as one hash."""
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
