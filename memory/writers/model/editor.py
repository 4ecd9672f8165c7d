"""Edit operations of a model on the pools of the episodes' tasks (ReflectAndEdit of JERP Eq. 26)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coevo.configs.bank.writer import ModelEditorConfig
from coevo.memory.edit_operations import KINDS, Operation, RefusedError, parse
from coevo.memory.evidence.reward_extremes import foremost, worst
from coevo.memory.text import MAX_FIELD_CHARS, content_words
from coevo.memory.writers.model.answer_lessons import foreign, refusal
from coevo.memory.writers.model.answers import AnswerReader, PromptedQuestion, answers, counts, rejects_of
from coevo.memory.writers.model.prompts import EDIT, prompted
from coevo.memory.writers.writer import Edit, Evidence, Proposal, room_of
from coevo.records.entry import Entry
from coevo.records.episode import Episode
from coevo.records.task import KeyFunction


class ModelEditor:
    """Writer that asks one question per pool with an episode."""

    def __init__(self, config: ModelEditorConfig, key: KeyFunction) -> None:
        self._config = config
        self._key = key

    def write(self, evidence: Evidence) -> Proposal:
        """At most ``config.operations`` operations for each pool, in the order of the episodes."""
        pools: dict[str, list[Episode]] = {}
        for episode in evidence.episodes:
            pools.setdefault(self._key(episode.task), []).append(episode)
        held = {pool: [entry for entry in evidence.library.entries if entry.scope == pool] for pool in pools}
        asked = [self._prompted(pool, played, held[pool], evidence) for pool, played in pools.items()]
        found = answers(evidence.ask, asked, "operations")
        edits = tuple(
            Edit(pool, operation.line(), answer.prompted.question.episodes)
            for pool, answer in zip(pools, found, strict=False)
            for operation in self._operations(answer, held[pool])
        )
        sizes = {"pools": float(len(pools)), "operations": float(len(edits))}
        return Proposal(edits=edits, counts=counts(found) | sizes, rejects=rejects_of(found))

    def _prompted(
        self, pool: str, played: Sequence[Episode], held: Sequence[Entry], evidence: Evidence
    ) -> PromptedQuestion:
        earlier, count = evidence.references.of(pool).successes, self._config.successes
        successes = earlier[len(earlier) - min(len(earlier) if count is None else count, len(earlier)) :]
        new = foremost(played, worst)[: self._config.trajectories]
        room = room_of(evidence.ask, self._config.question_tokens)
        return prompted("edits", EDIT.format(most=self._config.operations), [*new, *successes], room, held)

    def _operations(self, answer: AnswerReader, held: Sequence[Entry]) -> Iterator[Operation]:
        """Operations among the first items that pass the checks; bad ones are refused, also behind these."""
        words = frozenset[str]().union(*(attempt.words for attempt in answer.prompted.attempts))
        notes = held[: len(held) - answer.prompted.notes_left_out]
        words |= {word for entry in notes for word in content_words(entry.strategy)}
        ids = {entry.id for entry in notes}
        for index, item in enumerate(answer.items):
            read = _operation(item, ids, words)
            if isinstance(read, str):
                answer.refuse(read, item)
            elif index < self._config.operations:
                yield read


def _operation(item: Mapping[str, Any], ids: set[str], words: frozenset[str]) -> Operation | str:
    """The operation of an item, or the reason to refuse it."""
    kind, targets, text = item.get("op"), item.get("ids"), item.get("text")
    if kind not in KINDS or not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
        return "shape"
    if reason := refusal(text, MAX_FIELD_CHARS):
        return reason
    if not ids.issuperset(targets):
        return "unknown"
    votes = kind in ("UPVOTE", "DOWNVOTE")
    if not votes and (reason := foreign(str(text), words)):
        return reason
    wording = "" if votes else " ".join(str(text).split())
    try:
        return parse(Operation(kind, tuple(dict.fromkeys(targets)), wording).line())
    except RefusedError:
        return "shape"


def writer(config: ModelEditorConfig, key: KeyFunction) -> ModelEditor:
    """The editor by a model, with the settings of a configuration."""
    return ModelEditor(config, key)
