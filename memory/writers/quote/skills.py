"""Skills from failures of kinds of tasks with low success, general or specific to a kind (as in SkillRL)."""

from collections.abc import Iterable, Mapping, Sequence

from coevo.configs.bank.writer import QuoteSkillsConfig
from coevo.memory.evidence.contrasts import lessons
from coevo.memory.library import Library
from coevo.memory.writers.writer import Evidence, Proposal
from coevo.records.entry import Entry, also_from, rescoped, wording
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction

Skills = Mapping[str, Entry]
"""Skills by their wording."""


class SkillsWriter:
    """Writer that quotes the lessons of failures; reads training episodes only."""

    def __init__(self, config: QuoteSkillsConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """For each kind with too low success, new skills that most of its failures teach.

        A skill that failures of another kind also teach, or that another kind already has, is general.
        """
        failing = self._failing(evidence.episodes)
        taught = {kind: self._taught(failures, evidence.revision) for kind, failures in failing.items()}
        chosen = [entry for kind in taught for entry in self._chosen(kind, taught, evidence.library)]
        drafts: dict[str, Entry] = {}
        for entry in chosen:
            drafts[entry.id] = also_from(drafts.get(entry.id, entry), entry.sources)
        general = sum(not entry.scope for entry in drafts.values())
        counts = {"failing_kinds": float(len(failing)), "general_skills": float(general)}
        return Proposal(tuple(drafts.values()), counts=counts)

    def _failing(self, episodes: Iterable[Episode]) -> dict[str, list[Episode]]:
        """Failures of the kinds with success below the bound, in order of first appearance."""
        kinds: dict[str, list[Episode]] = {}
        for episode in episodes:
            kinds.setdefault(self._key(episode.task), []).append(episode)
        below = self._config.below
        return {
            kind: [episode for episode in played if not episode.success]
            for kind, played in kinds.items()
            if sum(episode.success for episode in played) / len(played) < below
        }

    def _taught(self, failures: Sequence[Episode], revision: int) -> Skills:
        """Lessons of a kind's failures, the most frequent first."""
        found: dict[str, Entry] = {}
        for failure in failures:
            for lesson in (lesson.entry for lesson in lessons(failure, revision)):
                skill = rescoped(lesson, self._key(failure.task))
                text = wording(skill.strategy)
                found[text] = also_from(found.get(text, skill), skill.sources)
        return dict(sorted(found.items(), key=lambda item: -len(item[1].sources)))

    def _chosen(self, kind: str, taught: Mapping[str, Skills], library: Library) -> list[Entry]:
        held = {(wording(entry.strategy), entry.scope) for entry in library.entries}
        elsewhere = {text for text, scope in held if scope != kind}
        elsewhere |= {text for other, skills in taught.items() if other != kind for text in skills}
        skills = {text: rescoped(entry, "") if text in elsewhere else entry for text, entry in taught[kind].items()}
        new = [entry for text, entry in skills.items() if not held & {(text, kind), (text, "")}]
        return new[: self._config.skills]


def writer(config: QuoteSkillsConfig, key: KeyFunction) -> SkillsWriter:
    """Skills with the settings of a configuration."""
    return SkillsWriter(config, key)
