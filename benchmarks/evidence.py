"""Studies in reserved worlds: played in the order of what rests on them, and printed into the documents.

    benchmarks/results/studies/<study>.json   design, results, earlier results; what is there is not played again

``decide`` continues where it was cut off. ``print_tables`` fills the blocks between ``<!-- made: … -->`` and
``<!-- /made -->`` of README and docs with what these files say; a test compares them.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import RESULTS, ROOT, Bench
from benchmarks.command import coevo
from coevo.configs.load.load_study import load_studies
from coevo.configs.study_config import StudyConfig
from coevo.flows.studies.kept_study import KeptStudy, result_in, shown_of
from coevo.flows.studies.result import REVERSED, UNDECIDED, ArmRow, StudyResult
from coevo.utilities.errors import CoevoError

KEPT = RESULTS / "studies"
CLAIMS = ("joint-training", "joint-training-level-2", "joint-controls", "gain-of-methods", "attempts-at-a-task")
"""Studies that README's claims rest on, in the order in which they are played."""
CHOICES = ("grpo-tuning",)
"""Studies that choose settings, on development worlds; they are never decided."""
PAGES = ("README.md", "docs/ablate.md", "docs/benchmarks.md", "docs/papers.md")
BLOCK = re.compile(r"(<!-- made: (.+?) -->\n).*?(<!-- /made -->)", re.DOTALL)
PANELS = ("seen-houses", "other-facts", "other-houses")

KeptDocument = Mapping[str, Any]


def decide(bench: Bench) -> None:
    """Play what is missing of every study, and print the documents' tables after each."""
    for study in in_order(load_studies(), kept()):
        if not is_decided(study, bench.cells):
            coevo(bench.workspace, "ablate", study.name, "--keep", str(bench.cells))
            print_tables(bench)


def in_order(studies: Sequence[StudyConfig], found: Mapping[str, KeptDocument]) -> list[StudyConfig]:
    """Studies that can run: README's claims, reversed findings, those that were never run, and the others."""

    def place(study: StudyConfig) -> tuple[int, str]:
        if study.name in CLAIMS:
            return CLAIMS.index(study.name), ""
        standing = found[study.name].get("standing") if study.name in found else None
        return len(CLAIMS) + (0 if standing == REVERSED else 1 if study.name not in found else 2), study.name

    return sorted((study for study in studies if not study.needs and study.name not in CHOICES), key=place)


def is_decided(study: StudyConfig, folder: Path) -> bool:
    """Return True if all runs of a study as it is are kept."""
    try:
        return len(KeptStudy.of(study, folder).outcomes()) == study.seeds * len(study.arms)
    except CoevoError:
        return False


def kept(folder: Path = KEPT) -> dict[str, KeptDocument]:
    """Shown result of each study: that of reserved worlds, or the latest earlier one as long as none has come."""
    documents = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
    shown = {name: shown_of(each) for name, each in documents.items()}
    return {name: each for name, each in shown.items() if each["runs"]}


def print_tables(bench: Bench | None = None) -> None:
    """Fill the blocks of README and docs."""
    for page in PAGES:
        path = ROOT / page
        text = path.read_text("utf-8")
        made = filled(text)
        if made != text:
            path.write_text(made, "utf-8")
            print(f"{page}: tables printed anew")


def filled(text: str) -> str:
    """A document with its blocks as the kept files have them."""
    found = kept()
    return BLOCK.sub(lambda block: block[1] + "\n".join(_block(block[2], found)) + "\n" + block[3], text)


def _block(what: str, found: Mapping[str, KeptDocument]) -> list[str]:
    kind, _, name = what.partition(" ")
    makers: Mapping[str, Callable[[], Iterator[str]]] = {
        "halves": partial(_halves, name, found),
        "findings": partial(_findings, found),
        "paper": partial(_of_paper, name, found),
        "unplayed": partial(_unplayed, found),
    }
    return list(makers[kind]())


def _halves(name: str, found: Mapping[str, KeptDocument]) -> Iterator[str]:
    """Joint training beside its halves, by panel."""
    if name not in found:
        yield f"Not run yet in reserved worlds: `coevo ablate {name} --keep benchmarks/results/studies`."
        return
    result = result_in(found[name])
    rows = {(row.metric.rpartition("/")[2], row.over, row.arm): row for row in result.rows}
    yield f"{_said(result)}; {units(found[name])}."
    yield ""
    yield "| panel | joint | policy alone, equal time | frozen policy with bank | joint − policy | joint − frozen |"
    yield "|---|---|---|---|---|---|"
    for panel in PANELS:
        joint, alone, frozen = (rows[panel, "end", arm] for arm in ("joint", "policy-only", "frozen"))
        means = " | ".join(map(_mean, (joint, alone, frozen)))
        yield f"| {panel} | {means} | {_difference(alone, -1)} | {_difference(frozen, -1)} |"
    yield ""
    start = {arm: _start(rows[PANELS[0], "end", arm], rows[PANELS[0], "gain", arm]) for arm in ("joint", "policy-only")}
    gained = rows[PANELS[0], "gain", "policy-only"].mean
    if start["joint"] is not None and gained is not None:
        yield (
            f"On `{PANELS[0]}` all start at {number(start['joint'])}; the policy alone gained {gained:+.3f} of the "
            f"{1 - (start['policy-only'] or 0):.3f} that there is to learn."
        )


def _start(end: ArmRow, gain: ArmRow) -> float | None:
    return None if end.mean is None or gain.mean is None else end.mean - gain.mean


def _findings(found: Mapping[str, KeptDocument]) -> Iterator[str]:
    """Every kept comparison of a claim, reversed and undecided ones like any other."""
    yield "| study | metric | arm | against | difference | verdict | played in |"
    yield "|---|---|---|---|---|---|---|"
    for name, document in found.items():
        result = result_in(document)
        base = {(row.metric, row.over): row for row in result.rows if row.arm == result.study.base.name}
        for row in result.rows:
            if row.verdict is not None:
                own = row.expected is not None and row.expected.startswith(("below", "above"))
                against = row.expected if own else f"{result.study.base.name} {_mean(base[row.metric, row.over])}"
                value = f"{number(row.mean)} {_interval(row.low, row.high)}" if own else _difference(row)
                metric = f"{row.metric}, {row.over}"
                yield (
                    f"| `{name}` | {metric} | {row.arm} {_mean(row)} | {against} | {value} | {_strong(row.verdict)} | "
                    f"{units(document)} |"
                )


def _of_paper(paper: str, found: Mapping[str, KeptDocument]) -> Iterator[str]:
    """Findings of a paper, each with what came out here."""
    for study in load_studies():
        if study.paper.startswith(paper):
            place = f" ({study.figure})" if study.figure else ""
            yield f"- `{study.name}`{place}: {study.finding} **{_outcome(study, found)}**"


def _outcome(study: StudyConfig, found: Mapping[str, KeptDocument]) -> str:
    if study.name in found:
        return f"{result_in(found[study.name]).standing()}, {units(found[study.name])}"
    return f"not run: needs {'; '.join(study.needs)}" if study.needs else "not run"


def _unplayed(found: Mapping[str, KeptDocument]) -> Iterator[str]:
    """Runs that are missing in reserved worlds, with their hours."""
    yield "| study | runs missing | hours |"
    yield "|---|---|---|"
    total = 0.0
    for study in in_order(load_studies(), found):
        path = KEPT / f"{study.name}.json"
        document = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        missing = study.seeds * len(study.arms) - (len(document["runs"]) if "block" in document else 0)
        hours = missing * (study.minutes or 0) / 60
        total += hours
        if missing:
            yield f"| `{study.name}` | {missing} | {hours:.1f} |"
    yield f"| all | | {total:.0f} |"


def units(document: KeptDocument) -> str:
    """Worlds or seeds of a result, and which."""
    study = document["study"]
    done = min((sum(run["arm"] == arm["name"] for run in document["runs"]) for arm in study["arms"]), default=0)
    if "block" not in document:
        return f"{done} seeds of a development world"
    of = "" if done == study["seeds"] else f" of {study['seeds']}"
    notes = "".join(f"; {note}" for note in document["notes"])
    runs = f"{len(document['runs'])} of {study['seeds'] * len(study['arms'])} runs in"
    return f"{f'{done}{of}' if done else runs} reserved worlds, block {document['block']}{notes}"


def _said(result: StudyResult) -> str:
    return f"Finding: {result.study.finding.rstrip('.')}: {_strong(result.standing() or UNDECIDED)}"


def _strong(verdict: str) -> str:
    return f"**{verdict}**" if verdict in (REVERSED, UNDECIDED) else verdict


def number(value: float | None) -> str:
    """A value as tables show it: three decimals, and no leading nought."""
    return "–" if value is None else re.sub(r"^(-?)0\.", r"\1.", f"{value:.3f}")


def _mean(row: ArmRow) -> str:
    return number(row.mean)


def _difference(row: ArmRow, sign: int = 1) -> str:
    if row.difference is None:
        return "–"
    ends = [None if end is None else sign * end for end in (row.difference_low, row.difference_high)]
    return f"{sign * row.difference:+.3f} {_interval(*ends[::sign])}".rstrip()


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:+.3f}, {high:+.3f}]"
