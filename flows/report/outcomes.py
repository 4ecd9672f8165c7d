"""Outcomes of a run: success at start and end and by kind of task, reasons of failures, settings that differ."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from coevo.flows.history import history
from coevo.flows.history.revision_reference import Reading
from coevo.flows.history.stored_episodes import EpisodeFilter, episode_rows, reasons_of
from coevo.flows.history.success import training_success
from coevo.lineage.revision.code_version import differing, flat
from coevo.lineage.revision.manifest import Manifest
from coevo.records.intervals import Interval, of_share
from coevo.utilities.errors import CoevoError

OutcomeRow = dict[str, Any]
RowTable = tuple[tuple[str, ...], list[OutcomeRow]]
"""Columns, and rows that have each of them."""


def success_of(manifest: Manifest, panel: str) -> Interval | None:
    """Success on a panel, or ``train``, with its 95 % interval over tasks; None where it was not measured."""
    if panel == "train":
        return training_success(manifest)
    marks = str((manifest.state.get("outcomes") or {}).get(panel, "")).replace("-", "")
    return of_share(marks.count("1") / len(marks), len(marks)) if marks else None


def start_and_end(manifests: Sequence[Manifest], panels: Iterable[str], about: Mapping[str, str]) -> RowTable:
    """One row per panel: what it is, and its success where it was first and last measured on the trail."""
    columns = ("panel", "what it is", "first", "start", "start interval", "last", "end", "end interval")
    rows = []
    for panel in panels:
        found = [(each.revision, said) for each in history.trail(manifests) if (said := success_of(each, panel))]
        if found:
            ends = [cell for number, said in (found[0], found[-1]) for cell in (number, said.mean, bracket(said))]
            rows.append(dict(zip(columns, (panel, about.get(panel, ""), *ends), strict=True)))
    return columns, rows


def by_kind(rows: Iterable[Mapping[str, Any]]) -> RowTable:
    """Success of held-out episodes by panel and kind of task, the least first within a panel."""
    columns = ("panel", "kind of task", "episodes", "success", "interval")
    outcomes: dict[tuple[str, str], list[bool]] = {}
    for row in rows:
        outcomes.setdefault((row["panel"], row["kind"]), []).append(row["success"])
    shares = {pair: of_share(sum(found) / len(found), len(found)) for pair, found in outcomes.items()}
    ordered = sorted(shares, key=lambda pair: (pair[0], shares[pair].mean, pair[1]))
    cells = [(*pair, len(outcomes[pair]), shares[pair].mean, bracket(shares[pair])) for pair in ordered]
    return columns, [dict(zip(columns, each, strict=True)) for each in cells]


def by_reason(rows: Sequence[Mapping[str, Any]]) -> RowTable:
    """Failures of held-out episodes by panel, reason and the part of the lessons."""
    columns = ("panel", "reason", "lessons", "episodes")
    panels = dict.fromkeys(row["panel"] for row in rows)
    return columns, [
        {"panel": panel, **each} for panel in panels for each in reasons_of([r for r in rows if r["panel"] == panel])
    ]


def held_out_rows(opened: Reading) -> tuple[int | None, list[OutcomeRow]]:
    """Last evaluated revision on the trail, with the held-out episodes that it keeps; none where they are gone."""
    last = history.evaluated(opened.history)
    if last is None:
        return None, []
    then = Reading(opened.paths, opened.lineage, opened.history[: last.revision + 1])
    try:
        return last.revision, episode_rows(then, EpisodeFilter())
    except CoevoError:  # dropped by gc, or the run keeps none
        return last.revision, []


def changed_settings(manifest: Manifest) -> RowTable:
    """Settings that differ from the recipe that the run names; none where no such recipe is shipped."""
    from coevo.configs.load.load import load_recipe

    columns, ours = ("setting", "value", "recipe"), flat(manifest.state["config"])
    try:
        theirs = flat(load_recipe(str(ours["recipe"])).model_dump(mode="json"))
    except CoevoError:
        return columns, []
    keys = differing(ours, theirs)
    rows = [{"setting": key, "value": str(ours.get(key, "")), "recipe": str(theirs.get(key, ""))} for key in keys]
    return columns, rows


def panel_descriptions(env: str) -> dict[str, str]:
    """Description of each panel of a shipped environment, by its type; none for another, which is not imported here."""
    from coevo.envs.registry import find

    try:
        known = {} if ":" in env else find(env).panels
    except CoevoError:
        return {}
    return dict(known) if isinstance(known, Mapping) else {}


def origin(manifests: Sequence[Manifest], commit: str, overrides: Sequence[str]) -> list[tuple[str, str]]:
    """Recipe, method, seed, environment, times, commit and overrides of a run, as names and values."""
    config, last = manifests[-1].state["config"], manifests[-1]
    recipe, env = str(config["recipe"]), str(config["env"]["type"])
    return [
        ("recipe", recipe),
        ("method", recipe.removeprefix(f"{env}-")),
        ("seed", str(config["seed"])),
        ("environment", env),
        ("first commit", history.time_of(manifests[0])),
        ("last commit", history.time_of(last)),
        ("commit", commit[:12]),
        ("evaluation sets", ", ".join(config["evaluation"]["panels"]) or "none"),
        *([("given with the recipe", ", ".join(overrides))] if overrides else []),
    ]


def bracket(interval: Interval) -> str:
    """The ends of an interval."""
    return f"[{interval.low:.3f}, {interval.high:.3f}]"
