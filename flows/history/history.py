"""Revisions of a run, oldest first: those that led to the last one, and their headline metrics."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.cost import time_by_part
from coevo.utilities.errors import CoevoError


def predecessor(manifest: Manifest) -> int | None:
    """The revision whose state this one continues; for a rollback, the restored one."""
    return manifest.parent if manifest.restored_from is None else manifest.restored_from


def trail(history: Sequence[Manifest]) -> list[Manifest]:
    """Revisions that led to the last of ``history``, without those that a rollback left behind."""
    found: list[Manifest] = []
    revision = history[-1].revision if history else None
    while revision is not None:
        found.append(history[revision])
        revision = predecessor(history[revision])
    return found[::-1]


def headline_panel(manifest: Manifest) -> str | None:
    """The first panel of the configuration, which represents the run."""
    panels = manifest.state["config"]["evaluation"]["panels"]
    return panels[0] if panels else None


def held_out(manifest: Manifest) -> float | None:
    """Success on the headline panel; None if this revision was not evaluated."""
    return manifest.metrics.get(f"agent/success/{headline_panel(manifest)}")


def evaluated(history: Sequence[Manifest]) -> Manifest | None:
    """The last evaluated revision on the trail; None after a rollback to a revision without evaluation.

    Such a revision has no success: that of an earlier one belongs to another policy and bank.
    """
    for manifest in reversed(trail(history)):
        if held_out(manifest) is not None:
            return manifest
        if is_rollback(manifest):
            return None
    return None


def is_rollback(manifest: Manifest) -> bool:
    """Return True if ``rollback`` made the revision; a branch also begins with the state of an earlier one."""
    return manifest.restored_from is not None and "branched_from" not in manifest.observed


def check(history: Sequence[Manifest]) -> None:
    """Make sure that manifests contain what every command reads.

    Raises:
        CoevoError: a manifest lacks a value, has another form, or is not that of its place.
    """
    try:
        for number, manifest in enumerate(history):
            before = predecessor(manifest)
            if manifest.revision != number or not (before is None or 0 <= before < number):
                raise CoevoError(f"revision {number} says it is {manifest.revision!r:.20}, after {before!r:.20}")
            held_out(manifest), happened(manifest), time_of(manifest), int(manifest.iteration)
        time_by_part(history), bank_sizes(history)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CoevoError(f"a manifest is not as coevo writes it: {type(error).__name__}: {error}") from error


def bank_sizes(history: Sequence[Manifest]) -> list[int | None]:
    """Active entries at each revision; None for a run without a bank."""
    sizes: list[int | None] = []
    for manifest in history:
        before = predecessor(manifest)
        start = None if manifest.state["config"]["bank"] is None else 0
        known = manifest.metrics.get("bank/size")
        sizes.append(int(known) if known is not None else start if before is None else sizes[before])
    return sizes


def happened(manifest: Manifest) -> str:
    """Origin of the revision, in a few words."""
    state = manifest.state
    if "branched_from" in manifest.observed:
        origin = manifest.observed["branched_from"]
        return ", ".join([f"branched from {origin['run']}@{origin['revision']}", *_accepted(manifest)])
    if manifest.restored_from is not None:
        return f"restored from {manifest.restored_from}"
    counts = {what: int(manifest.metrics.get(f"bank/{what}", 0)) for what in ("admitted", "rejected", "imported")}
    words = [f"{count} {what}" for what, count in counts.items() if count]
    if manifest.parent is None:
        words.insert(0, "start")
    if held_out(manifest) is not None:
        words.append("evaluated")
    if state.get("waiting"):
        words.append("waits for approval")
    if "retired" in state:
        words.append(f"retired {state['retired']['entry']}")
    if "approval" in state:
        said, who = "approved" if state["approval"]["approved"] else "turned down", manifest.observed.get("decided_by")
        words.append(said if who is None else f"{said} by {who}")
    return ", ".join([*words, *_accepted(manifest)])


def _accepted(manifest: Manifest) -> list[str]:
    return [f"changed {change}" for change in manifest.state.get("accepted_change", ())]


def time_of(manifest: Manifest) -> str:
    """Time of the commit, ISO 8601 in UTC."""
    moment: Any = manifest.observed["timestamp"]
    return datetime.fromtimestamp(moment / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
