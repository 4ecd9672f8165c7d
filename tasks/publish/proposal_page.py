"""Page about a proposal, in Markdown: its changes, the results of replay, and the episodes behind it."""

from collections.abc import Iterator, Sequence

from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank_state import after
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.tasks.publish.mlflow.page_tables import changes_of
from coevo.tasks.publish.revision_page import plain, verdicts

SAMPLE = 2
"""Episodes per outcome on a page."""
WOULD = {"admitted": "new", "edited": "changed", "retired": "gone"}
"""Words for a change that is still pending."""


def proposal_page(name: str, pending: Pending, entries: Sequence[Entry], episodes: Sequence[Episode]) -> str:
    """The page of a proposal.

    Args:
        name: ``RUN@N`` of the proposal.
        pending: the proposal.
        entries: active entries of the bank, without the proposal.
        episodes: episodes that may have led to it.
    """
    return "\n".join(_lines(name, pending, entries, episodes)) + "\n"


def _lines(name: str, pending: Pending, entries: Sequence[Entry], episodes: Sequence[Episode]) -> Iterator[str]:
    yield f"# {plain(name)} waits for approval"
    yield ""
    yield f"Nothing of this is in the bank. Yes: `coevo approve {name}`. No: `coevo approve {name} --reject`."
    yield from ("", "## What would change")
    yield from changes(entries, after(entries, pending.decision.entries))
    for ruling in pending.decision.operations:
        yield f"- {ruling.outcome}: {plain(ruling.line)} {plain(ruling.reason)}".rstrip()
    yield from verdicts(pending.decision.judged)
    for episode in sampled(pending, episodes):
        yield from episode_table(episode)


def changes(before: Sequence[Entry], now: Sequence[Entry]) -> Iterator[str]:
    """One line per changed entry."""
    for change, entry, strategy, condition, example, *_ in changes_of(before, now):
        yield f"- {WOULD[change]} `{entry}` {plain(strategy)} (when: {plain(condition)}; for example: {plain(example)})"


def sampled(pending: Pending, episodes: Sequence[Episode]) -> list[Episode]:
    """Some of the episodes behind the candidates: failures, then successes."""
    candidates = [entry for each in pending.decision.judged for entry in each.candidates]
    sources = {source for entry in (*candidates, *pending.decision.entries) for source in entry.sources}
    drawn = [episode for episode in episodes if episode.id in sources]
    return [episode for outcome in (False, True) for episode in [e for e in drawn if e.success is outcome][:SAMPLE]]


def episode_table(episode: Episode) -> Iterator[str]:
    """Format an episode as a table of its turns."""
    said = "solved" if episode.success else "not solved"
    yield from ("", f"## Episode `{episode.id}`: {said}", plain(episode.task.instruction), "")
    yield from ("| observation | action | feedback | reward |", "|---|---|---|---:|")
    for turn in episode.turns:
        yield f"| {plain(turn.observation)} | {plain(turn.action)} | {plain(turn.feedback)} | {turn.reward:g} |"
