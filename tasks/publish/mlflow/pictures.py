"""Pictures of a run at a revision (its distributions, success over time), and of the arms of a study."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coevo.tasks.publish.mlflow.publication import Publication, figures

DISTRIBUTIONS = {
    "advantages": ("policy/advantage_histogram/from_", "advantage of an episode", "episodes"),
    "retrievals": ("bank/retrieval/count_histogram/from_", "retrievals of an entry, from", "entries"),
}
"""Picture of a distribution: the prefix of its bins, and what its axes count."""
SUCCESS = "agent/success/"
CURVES = "pictures/success.png"
SIZE = (7.0, 3.5)
"""Inches."""


class ArmMean(NamedTuple):
    """Mean of an arm of a study with its interval; the bounds are None for a single seed."""

    arm: str
    mean: float
    low: float | None
    high: float | None


def publish_pictures(client: Any, run_id: str, publication: Publication) -> None:
    """Log the success curves up to this revision, and the distributions that it has."""
    values = figures(publication.manifest)
    lines: dict[str, dict[int, float]] = {}
    for name in sorted(name for name in values if name.startswith(SUCCESS)):
        earlier = {point.step: point.value for point in client.get_metric_history(run_id, name)}
        lines[name.removeprefix(SUCCESS)] = earlier | {publication.revision: values[name]}
    client.log_figure(run_id, curves(lines), CURVES)
    for name, (prefix, of, count) in DISTRIBUTIONS.items():
        if counts := bins(values, prefix):
            made = bars(counts, f"{name} of revision {publication.revision}", of, count)
            client.log_figure(run_id, made, f"pictures/{name}-r{publication.revision}.png")


def bins(values: Mapping[str, float], prefix: str) -> dict[float, float]:
    """Counts of a distribution by the lower edges of its bins, in order."""
    found = {float(name.removeprefix(prefix)): count for name, count in values.items() if name.startswith(prefix)}
    return dict(sorted(found.items()))


def curves(lines: Mapping[str, Mapping[int, float]]) -> Any:
    """Success by revision, one line per panel."""
    figure, (axes,) = _figure("success by revision")
    for panel, values in lines.items():
        steps = sorted(values)
        mark = "" if panel == "train" else "o"
        axes.plot(steps, [values[step] for step in steps], label=panel, marker=mark, linewidth=1.2, markersize=3.5)
    axes.set(xlabel="revision", ylabel="success", ylim=(-0.02, 1.02))
    axes.legend(frameon=False)
    return figure


def bars(counts: Mapping[float, float], title: str, of: str, count: str) -> Any:
    """Bars of a distribution, one as wide as the other, with the lower edges of their bins."""
    figure, (axes,) = _figure(title)
    axes.bar(range(len(counts)), list(counts.values()), width=0.92, align="edge")
    axes.set_xticks(range(len(counts)), [f"{edge:g}" for edge in counts])
    axes.set(xlabel=of, ylabel=count)
    return figure


def intervals(study: str, marks: Mapping[str, Sequence[ArmMean]]) -> Any:
    """TreatmentGroups of a study with their 95 % intervals, one plot per metric; the first arm's mean is a line."""
    figure, plots = _figure(study, rows=len(marks))
    for axes, (metric, arms) in zip(plots, marks.items(), strict=True):
        for index, arm in enumerate(arms):
            below, above = (0.0 if end is None else abs(arm.mean - end) for end in (arm.low, arm.high))
            axes.errorbar([index], [arm.mean], yerr=[[below], [above]], fmt="o", capsize=4, markersize=4)
        axes.axhline(arms[0].mean, linewidth=0.8, linestyle=":", color="gray")
        axes.set(ylabel=metric, xlim=(-0.5, len(arms) - 0.5))
        axes.set_xticks(range(len(arms)), [arm.arm for arm in arms])
    return figure


def _figure(title: str, rows: int = 1) -> tuple[Any, Any]:
    """Figure without pyplot, whose state is global to the process: this runs in a thread."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE[0], SIZE[1] * rows), layout="constrained")
    plots = figure.subplots(rows, squeeze=False)[:, 0]
    plots[0].set_title(title, loc="left")
    for axes in plots:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, plots
