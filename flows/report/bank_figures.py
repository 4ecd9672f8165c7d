"""Figures of the bank: a line per entry's life, and the verdicts of replay."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from coevo.flows.report.charts import WIDTH, Plot, Scale, across, upwards
from coevo.flows.report.lives import Life
from coevo.memory.bank.change import Judged

MOST_LIVES, ROW, ABOVE = 120, 9, 8
LABEL = 200
"""Space beside the lines for the entries' text."""
BINS = 120
"""Most columns for the uses of an entry."""
MOST_VERDICTS = 2000


@dataclass(frozen=True, slots=True)
class LifeLine:
    """The line of one entry.

    Attributes:
        life: the entry and its uses.
        y: vertical position.
        span: from creation to retirement, or to the last revision.
        uses: paths of the columns whose success rate is below 1/3, from 1/3 to 2/3, and above.
        edits: positions of its edits.
        retired: position of its retirement; None while it is active.
    """

    life: Life
    y: float
    span: tuple[float, float]
    uses: tuple[str, str, str]
    edits: tuple[float, ...]
    retired: float | None


@dataclass(frozen=True, slots=True)
class VerdictInterval:
    """A verdict of replay: vertical positions of the difference, the bounds of its interval, and the threshold."""

    judged: Judged
    x: float
    y: float
    low: float
    high: float
    delta: float


def life_lines(lives: Iterable[Life], edits: dict[str, list[int]], last: int) -> tuple[Scale, list[LifeLine]]:
    """Lines of the entries retrieved most, in order of creation; ``edits`` are revisions by entry."""
    shown = sorted(lives, key=lambda life: (-life.shown, life.entry.created, life.entry.id))[:MOST_LIVES]
    x = Scale(0, max(1, last), 16, WIDTH - LABEL)
    ordered = sorted(shown, key=lambda life: (life.entry.created, life.entry.id))
    return x, [_life_line(life, ABOVE + ROW * row, edits.get(life.entry.id, []), x) for row, life in enumerate(ordered)]


def intervals(judged: Sequence[Judged], last: int) -> tuple[Plot, list[VerdictInterval]]:
    """The latest verdicts; those of one revision are side by side."""
    shown = judged[-MOST_VERDICTS:]
    values = [value for each in shown for value in (*each.verdict.interval, each.verdict.delta)]
    x, y = across(last), upwards(values, 300, include=[0.0])
    step = (x.end - x.start) / (x.high + 1) * 0.8
    found = []
    for _, group in groupby(shown, key=lambda each: each.verdict.revision):
        beside = list(group)
        for number, each in enumerate(beside):
            aside = step * ((number + 0.5) / len(beside) - 0.5)
            found.append(_interval(each, round(x.at(each.verdict.revision) + aside, 1), y))
    return Plot(300, x, y), found


def _interval(judged: Judged, x: float, y: Scale) -> VerdictInterval:
    verdict = judged.verdict
    low, high = verdict.interval
    return VerdictInterval(judged, x, y.at(verdict.difference), y.at(low), y.at(high), y.at(verdict.delta))


def _life_line(life: Life, y: float, edits: Sequence[int], x: Scale) -> LifeLine:
    entry, last = life.entry, int(x.high)
    end = last if entry.active else entry.retired
    changed = sorted({*edits, *([entry.edited] if entry.edited > entry.created else [])})
    span = x.at(entry.created), x.at(end)
    retired = None if entry.active else x.at(entry.retired)
    return LifeLine(life, y, span, _columns(life, y, x), tuple(x.at(revision) for revision in changed), retired)


def _columns(life: Life, y: float, x: Scale) -> tuple[str, str, str]:
    size = max(1, -(-(int(x.high) + 1) // BINS))
    binned: dict[int, tuple[int, int]] = {}
    for revision, (shown, solved) in life.uses.items():
        before = binned.get(revision // size, (0, 0))
        binned[revision // size] = before[0] + shown, before[1] + solved
    wide = round((x.end - x.start) / (x.high + 1) * size, 1)
    paths: tuple[list[str], list[str], list[str]] = ([], [], [])
    for column, (shown, solved) in sorted(binned.items()):
        at = x.at(column * size) - (wide / 2 if size == 1 else 0)
        paths[min(2, 3 * solved // shown)].append(f"M{at:g} {y - 3:g}h{wide:g}v6h-{wide:g}z")
    return "".join(paths[0]), "".join(paths[1]), "".join(paths[2])
