"""Skills from the failures of kinds of tasks that go badly, general ones and those of a kind (as SkillRL)."""

from collections.abc import Iterable, Mapping, Sequence

from configs.writer import SkillsWriterConfig
from memory.lessons import lessons
from memory.library import Library
from memory.writers.base import Evidence, Proposal
from records.entry import Entry, also_from, rescoped
from records.episode import Episode
from records.task import Key

Skills = Mapping[str, Entry]
"""Skills by their text."""


class SkillsWriter:
    """Quotes what failures taught; it looks at training episodes only."""

    def __init__(self, config: SkillsWriterConfig, key: Key) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """For each kind that succeeds too seldom, the skills that most of its failures teach, if they are new.

        A skill that failures of another kind teach as well, or that another kind has already, is general.
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
        """Failures of the kinds whose success is below the bound, in order of first appearance."""
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
        """What the failures of a kind teach, what most of them teach first."""
        found: dict[str, Entry] = {}
        for failure in failures:
            for lesson in (lesson.entry for lesson in lessons(failure, revision)):
                skill = rescoped(lesson, self._key(failure.task))
                found[skill.strategy] = also_from(found.get(skill.strategy, skill), skill.sources)
        return dict(sorted(found.items(), key=lambda item: -len(item[1].sources)))

    def _chosen(self, kind: str, taught: Mapping[str, Skills], library: Library) -> list[Entry]:
        held = {(entry.strategy, entry.scope) for entry in library.entries}
        elsewhere = {text for text, scope in held if scope != kind}
        elsewhere |= {text for other, skills in taught.items() if other != kind for text in skills}
        skills = [rescoped(entry, "") if text in elsewhere else entry for text, entry in taught[kind].items()]
        new = [entry for entry in skills if not held & {(entry.strategy, kind), (entry.strategy, "")}]
        return new[: self._config.skills]


def writer(config: SkillsWriterConfig, key: Key) -> SkillsWriter:
    """Skills with the settings of a configuration."""
    return SkillsWriter(config, key)
