"""Load of a run's vLLM servers: what runs and waits in each, by the statistics that each logs every two seconds.

Servers that are given by URL log elsewhere, and are not told of here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

STATISTICS = re.compile(
    r"Avg generation throughput: (?P<tokens_per_s>[\d.]+) tokens/s, Running: (?P<running>\d+) reqs, "
    r"Waiting: (?P<waiting>\d+) reqs,(?: Preemptions: \d+,)?.*?KV cache usage: (?P<cache>[\d.]+)%"
)
"""Line that a vLLM server logs while it computes."""
TAIL = 64 * 1024
"""Bytes at the end of a log in which that line is looked for."""
FIGURES = ("tokens_per_s", "running", "waiting", "cache")
MAX_LINES = 8
"""Most engines that are told of in lines, those with the longest queues."""


def server_logs(folder: Path) -> list[Path]:
    """Logs of a run's servers."""
    return sorted(folder.glob("server-*.log"))


def engine_load(folder: Path) -> Iterator[dict[str, Any]]:
    """Load of each engine by the last line of statistics in its log."""
    for log in server_logs(folder):
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            lines = list(STATISTICS.finditer(file.read().decode(errors="replace")))
        if lines:
            said = {name: float(value) for name, value in lines[-1].groupdict().items()}
            whole = {"running": int(said["running"]), "waiting": int(said["waiting"])}
            yield {"name": log.stem, "log": str(log), **said, **whole}


def busiest(engines: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The engine with the longest queue, for which a batch waits; None without engines."""
    return max(engines, key=_backlog, default=None)


def summary_of(engines: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Mean and worst of the engines: a batch ends when the last one does. None without engines."""
    worst = busiest(engines)
    if worst is None:
        return None
    mean = {name: round(fmean(each[name] for each in engines), 3) for name in FIGURES}
    return {"mean": mean, "worst": {"name": worst["name"], **{name: worst[name] for name in FIGURES}}}


def load_lines(engines: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Load in lines: the mean of several engines, then each, the busiest first."""
    if len(engines) < 2:
        return tuple(f"{each['name']}: {_figures(each)}" for each in engines)
    summary, first = summary_of(engines), sorted(engines, key=_backlog, reverse=True)
    assert summary is not None
    lines = [f"mean of {len(engines)} engines: {_figures(summary['mean'])}"]
    lines += [f"{each['name']}{'' if at else ', the busiest'}: {_figures(each)}" for at, each in enumerate(first)]
    more = len(engines) - MAX_LINES
    return (*lines[: MAX_LINES + 1], *([f"and {more} with shorter queues"] if more > 0 else []))


def _figures(row: Mapping[str, Any]) -> str:
    text = "{running:g} running, {waiting:g} waiting, {tokens_per_s:g} tokens/s, cache {cache:g} %"
    return text.format_map(row)


def _backlog(engine: Mapping[str, Any]) -> tuple[float, float, float]:
    """Order of engines, by requests that wait, then those that run, then slowness."""
    return engine["waiting"], engine["running"], -engine["tokens_per_s"]
