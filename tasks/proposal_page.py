"""What a page about a proposal says, in Markdown: what would change, what replay found, and what it was drawn from."""

from collections.abc import Iterator, Sequence

from memory.pending import Pending
from records.entry import Entry
from records.episode import Episode
from tasks.revision_page import plain, verdicts
from tasks.tracking.tables import changes_of

SAMPLE = 2
"""Episodes of either outcome that a page shows."""
WOULD = {"admitted": "new", "edited": "changed", "retired": "gone"}
"""What is said of an entry as long as nothing has become of it."""


def proposal_page(name: str, pending: Pending, entries: Sequence[Entry], episodes: Sequence[Episode]) -> str:
    """The page of a proposal.

    Args:
        name: ``RUN@N`` that waits.
        pending: what is proposed.
        entries: the bank's active entries, without it.
        episodes: that it may have been drawn from.
    """
    return "\n".join(_lines(name, pending, entries, episodes)) + "\n"


def after(entries: Sequence[Entry], pending: Pending) -> list[Entry]:
    """The active entries if a person says yes."""
    held = {entry.id: entry for entry in entries} | {entry.id: entry for entry in pending.decision.entries}
    return [entry for entry in held.values() if entry.active]


def _lines(name: str, pending: Pending, entries: Sequence[Entry], episodes: Sequence[Episode]) -> Iterator[str]:
    yield f"# {plain(name)} waits for approval"
    yield ""
    yield f"Nothing of this is in the bank. Yes: `coevo approve {name}`. No: `coevo approve {name} --reject`."
    yield from ("", "## What would change")
    yield from changes(entries, after(entries, pending))
    for ruling in pending.decision.operations:
        yield f"- {ruling.outcome}: {plain(ruling.line)} {plain(ruling.reason)}".rstrip()
    yield from verdicts(pending.decision.judged)
    for episode in sampled(pending, episodes):
        yield from told(episode)


def changes(before: Sequence[Entry], now: Sequence[Entry]) -> Iterator[str]:
    """A line for each entry that is not as it was."""
    for change, entry, strategy, condition, example, *_ in changes_of(before, now):
        yield f"- {WOULD[change]} `{entry}` {plain(strategy)} (when: {plain(condition)}; for example: {plain(example)})"


def sampled(pending: Pending, episodes: Sequence[Episode]) -> list[Episode]:
    """Some of the episodes that the candidates were written from: those that failed, then those that did not."""
    candidates = [entry for each in pending.decision.judged for entry in each.candidates]
    sources = {source for entry in (*candidates, *pending.decision.entries) for source in entry.sources}
    drawn = [episode for episode in episodes if episode.id in sources]
    return [episode for outcome in (False, True) for episode in [e for e in drawn if e.success is outcome][:SAMPLE]]


def told(episode: Episode) -> Iterator[str]:
    """An episode turn by turn."""
    said = "solved" if episode.success else "not solved"
    yield from ("", f"## Episode `{episode.id}`: {said}", plain(episode.task.instruction), "")
    yield from ("| observation | action | feedback | reward |", "|---|---|---|---:|")
    for turn in episode.turns:
        yield f"| {plain(turn.observation)} | {plain(turn.action)} | {plain(turn.feedback)} | {turn.reward:g} |"
