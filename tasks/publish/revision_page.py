"""Page about a revision, in Markdown: its metrics, the changes of its bank, and links to more."""

import html
import re
from collections.abc import Iterator, Sequence

from coevo.memory.bank.change import Judged
from coevo.tasks.publish.mlflow.page_tables import changes_of
from coevo.tasks.publish.mlflow.publication import Publication, figures

FIGURES = (
    "agent/faults/", "agent/reward/", "agent/success/", "agent/turns/train",
    "agent/unusable/", "bank/admitted", "bank/firings", "bank/imported", "bank/proposed",
    "bank/rejected", "bank/retired", "bank/size", "bank/utility", "bank/writer/firings", "cost/seconds/",
    "policy/advantage/std",
    "policy/advantage/zero_variance_share", "policy/critic/explained_variance", "policy/reward/",
    "policy/update/entropy", "policy/update/grad_norm", "policy/update/kl",
)  # fmt: skip
"""Prefixes of the metrics on a page; MLflow has all metrics."""
MAX_ENTRY_CHARS = 200
"""Most characters of an entry on a page."""


def page(run: str, publication: Publication) -> str:
    """The page of a revision."""
    return "\n".join(_lines(run, publication)) + "\n"


def _lines(run: str, publication: Publication) -> Iterator[str]:
    state = publication.manifest.state
    yield f"# {plain(run)}@{publication.revision}"
    yield ""
    yield f"Iteration {state['iteration']}, commit `{publication.commit[:12]}`{_restored(state.get('restored_from'))}."
    yield "All gates of this revision passed."
    yield from (f"\n**Warning:** {plain(alarm)}" for alarm in publication.alarms)
    yield from _bank(publication)
    yield from verdicts(publication.judged)
    yield from _table(publication)
    yield ""
    yield f"Look further: `coevo bank why {run}@{publication.revision} ENTRY`, and in MLflow the run whose tag "
    yield f"`coevo.run` is `{run}` at step {publication.revision}."


def _table(publication: Publication) -> Iterator[str]:
    yield from ("", "| figure | value |", "|---|---:|")
    for name, value in sorted(figures(publication.manifest).items()):
        if name.startswith(FIGURES):
            yield f"| {plain(name)} | {value:.4g} |"


def _bank(publication: Publication) -> Iterator[str]:
    if publication.before is None or publication.entries is None:
        return
    changes = list(changes_of(publication.before, publication.entries))
    yield from ("", f"## Bank: {len(publication.entries)} entries")
    for change, name, strategy, *_ in changes:
        yield f"- {change} `{name}` {plain(strategy)}"
    if not changes:
        yield "- unchanged"


def verdicts(judged: Sequence[Judged]) -> Iterator[str]:
    """Table of the results of replay; empty without replay."""
    if judged:
        yield from ("", "## Replay", "| candidates | with | without | difference | needed | |")
        yield "|---|---:|---:|---:|---:|---|"
    for each in judged:
        said, texts = each.verdict, "; ".join(plain(entry.strategy) for entry in each.candidates)
        numbers = f"{said.reward_with:.3f} | {said.reward_without:.3f} | {said.difference:+.3f} ± {said.stderr:.3f}"
        ended = "passed" if said.admitted else "held back"
        ended += "" if said.seen_share is None else f", seen by {said.seen_share:.0%}"
        yield f"| {texts} | {numbers} | {said.requirement} | {ended} |"


def _restored(revision: int | None) -> str:
    return "" if revision is None else f", revision {revision} again"


def plain(text: str) -> str:
    """Escape text from the environment: no markup, links, tables or line breaks."""
    short = " ".join(text.split())[:MAX_ENTRY_CHARS]
    return re.sub(r"([\\`*_{}\[\]()#+!|~>-])", r"\\\1", html.escape(short, quote=False))
