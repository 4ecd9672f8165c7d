"""The built-in writer: candidates from the contrast of trajectories, without a model (CoEvo-RL section 3.4)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from configs.bank import ContrastWriterConfig
from memory.contrast import Exhibit, exhibits
from records.entry import Entry
from records.episode import Episode


class ContrastWriter:
    """Quotes feedback; it reads nothing but the text of episodes and the scope of their tasks."""

    def __init__(self, config: ContrastWriterConfig) -> None:
        self._config = config

    def write(self, episodes: Sequence[Episode], known: Collection[str], revision: int) -> list[Entry]:
        """Candidates for ``revision``, at most ``config.candidates``, from at most ``config.buffer`` episodes.

        Contrastive pairs come first, then success clusters, then failure clusters; a lesson of several episodes is
        one candidate with all of them as sources. Ids in ``known`` are not written again.
        """
        drafts: dict[str, Entry] = {}
        for exhibit in self._buffered(exhibits(episodes, revision)):
            for lesson in exhibit.lessons:
                drafts[lesson.id] = _join(drafts.get(lesson.id, lesson), lesson)
        fresh = [entry for entry in drafts.values() if entry.id not in known]
        return fresh[: self._config.candidates]

    def _buffered(self, ranked: Iterable[Exhibit]) -> Iterator[Exhibit]:
        seen: set[str] = set()
        for exhibit in ranked:
            seen |= {episode.id for episode in exhibit.episodes}
            if len(seen) > self._config.buffer:
                return
            yield exhibit


def _join(draft: Entry, lesson: Entry) -> Entry:
    return replace(draft, sources=tuple(dict.fromkeys([*draft.sources, *lesson.sources])))
