"""Figure of the lineage: revisions that led to the last one, those that rollbacks left behind, and branches."""

from collections.abc import Sequence
from dataclasses import dataclass

from coevo.flows.history.history import happened, is_rollback, predecessor, trail
from coevo.flows.history.run_summaries import readable
from coevo.flows.report.charts import WIDTH, Scale
from coevo.lineage.lineage import Lineage
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.workspace import Workspace

LANE, FIRST = 26, 40
NAME_WIDTH = 90
"""Space beside the last revision for the names of branches."""


@dataclass(frozen=True, slots=True)
class Offshoot:
    """A run that was branched from a revision of this one."""

    run: str
    revision: int


@dataclass(frozen=True, slots=True)
class Node:
    """A revision; ``kind`` is ``led`` if the last one descends from it, ``aside`` if a rollback left it behind."""

    revision: int
    x: float
    y: float
    kind: str
    kept: bool
    title: str


@dataclass(frozen=True, slots=True)
class Edge:
    """Edge from a revision's predecessor to it: ``next``, ``aside``, ``rollback`` or ``branch``."""

    source: int
    target: int
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Label:
    """Text at a position of the figure."""

    x: float
    y: float
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Graph:
    """The figure: revisions from left to right, those left behind below."""

    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    labels: tuple[Label, ...]


def offshoots(lineage: Lineage, name: str, workspace: Workspace, last: int) -> list[Offshoot]:
    """Runs of the workspace that were branched from this one, up to its revision ``last``."""
    mine, found = lineage.history.commits(), []
    for one in readable(workspace):
        if one.paths.name == name or not one.revisions:
            continue
        with Lineage.open(one.paths.lineage, workspace.cache) as other:
            theirs = other.history.commits()
            for manifest in one.revisions if theirs[:1] == mine[:1] else ():
                origin = manifest.observed.get("branched_from", {})
                start = origin.get("revision", -1)
                if origin.get("run") == name and 0 <= start <= last and theirs[start] == mine[start]:
                    found.append(Offshoot(one.paths.name, start))
    return sorted(found, key=lambda each: (each.revision, each.run))


def graph(history: Sequence[Manifest], kept: set[int], tags: dict[str, int], branches: Sequence[Offshoot]) -> Graph:
    """Draw a history, with tags and branches at their revisions."""
    x = Scale(0, max(1, history[-1].revision), 20, WIDTH - NAME_WIDTH)
    led = {manifest.revision for manifest in trail(history)}
    lanes = _lanes(history, led)
    lowest = max(lanes)

    def at(revision: int) -> tuple[float, float]:
        return x.at(revision), FIRST + LANE * lanes[revision]

    nodes = tuple(
        Node(m.revision, *at(m.revision), "led" if m.revision in led else "aside", m.revision in kept, _title(m))
        for m in history
    )
    edges = [_edge(m, nodes[before], nodes[m.revision]) for m in history if (before := predecessor(m)) is not None]
    labels = [
        *(
            Label(at(m.revision)[0], at(m.revision)[1] - 10, "rollback", f"back to {m.restored_from}")
            for m in history
            if is_rollback(m)
        ),
        *(
            Label(at(m.revision)[0], at(m.revision)[1] - 10, "branch", _from(m))
            for m in history
            if "branched_from" in m.observed
        ),
        *(Label(at(revision)[0], 14, "tag", tag) for tag, revision in tags.items()),
    ]
    for number, branch in enumerate(branches, start=1):
        start, y = at(branch.revision), FIRST + LANE * (lowest + number)
        end = min(start[0] + 40, WIDTH - NAME_WIDTH + 10)
        edges.append(Edge(branch.revision, branch.revision, "branch", _curve(*start, end, y)))
        labels.append(Label(end + 5, y + 4, "branch", branch.run))
    return Graph(FIRST + LANE * (lowest + len(branches)) + 34, nodes, tuple(edges), tuple(labels))


def _lanes(history: Sequence[Manifest], led: set[int]) -> list[int]:
    """Row of each revision: 0 for those that led to the last one; below, one row per stretch left behind."""
    lanes: list[int] = []
    ends: list[int] = []  # last revision drawn in each row below
    for manifest in history:
        revision, before = manifest.revision, predecessor(manifest)
        if revision in led or before is None:
            lanes.append(0)
        elif before == revision - 1 and before not in led:
            lanes.append(lanes[before])
            ends[lanes[before] - 1] = revision
        else:
            free = next((lane for lane, end in enumerate(ends) if end < before), len(ends))
            ends[free : free + 1] = [revision]
            lanes.append(free + 1)
    return lanes


def _edge(manifest: Manifest, source: Node, target: Node) -> Edge:
    kind = "next" if target.kind == "led" else "aside"
    if "branched_from" in manifest.observed:
        kind = "branch"
    elif is_rollback(manifest):
        kind = "rollback"
    straight = f"M{source.x:g} {source.y:g}H{target.x:g}"
    path = straight if source.y == target.y else _curve(source.x, source.y, target.x, target.y)
    return Edge(source.revision, target.revision, kind, path)


def _curve(x: float, y: float, to_x: float, to_y: float) -> str:
    """Path that goes vertically first, then horizontally."""
    bend = min(12.0, to_x - x)
    return f"M{x:g} {y:g}C{x + bend / 2:g} {y:g} {x + bend / 2:g} {to_y:g} {x + bend:g} {to_y:g}H{to_x:g}"


def _from(manifest: Manifest) -> str:
    origin = manifest.observed["branched_from"]
    return f"from {origin['run']}@{origin['revision']}"


def _title(manifest: Manifest) -> str:
    return ": ".join(part for part in (f"revision {manifest.revision}", happened(manifest)) if part)
