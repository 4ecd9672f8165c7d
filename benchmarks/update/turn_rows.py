"""Rows of episodes of many turns, of random tokens, in the layouts that prompts have.

Answers have about 80 tokens, observations about 20, a group's task 100 and each set of lessons 60.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coevo.models.trainer.samples import SAMPLES
from coevo.models.trainer.update_batch import Ids
from coevo.records.draws import generator, key

TASK, LESSONS, OBSERVATION, ANSWER, TAIL = 100, 60, 20, 80, 10
RESERVED = 6


@dataclass(frozen=True)
class EpisodeTokens:
    """Tokens of an episode.

    Attributes:
        task: of its group.
        lessons: of each turn.
        observations: of each turn.
        answers: of each turn.
        tail: ends every prompt.
    """

    task: Ids
    lessons: list[Ids]
    observations: list[Ids]
    answers: list[Ids]
    tail: Ids


def _history(said: EpisodeTokens, turn: int, first: int = 0) -> Ids:
    past = zip(said.observations[first:turn], said.answers[first:turn], strict=True)
    return tuple(token for observation, answer in past for token in (*observation, *answer))


def _conversation(said: EpisodeTokens, turn: int) -> Ids:
    spoken = (
        (*observation, *said.tail, *answer)
        for observation, answer in zip(said.observations[:turn], said.answers[:turn], strict=True)
    )
    before = tuple(token for part in spoken for token in part)
    return said.task + before + said.observations[turn] + said.tail


def _full(said: EpisodeTokens, turn: int) -> Ids:
    return said.task + _history(said, turn) + said.observations[turn] + said.tail


def _last(said: EpisodeTokens, turn: int) -> Ids:
    return said.task + _history(said, turn, max(turn - 1, 0)) + said.observations[turn] + said.tail


def _system_lessons(said: EpisodeTokens, turn: int) -> Ids:
    return said.lessons[turn] + _full(said, turn)


def _turn_lessons(said: EpisodeTokens, turn: int) -> Ids:
    return said.task + _history(said, turn) + said.observations[turn] + said.lessons[turn] + said.tail


LAYOUTS: dict[str, Callable[[EpisodeTokens, int], Ids]] = {
    "conversation": _conversation,
    "one message, full history": _full,
    "one message, m = 1": _last,
    "lessons in the system message": _system_lessons,
    "lessons in the latest turn": _turn_lessons,
}


def write_turns(
    path: Path, layout: str, vocabulary: int, turns: tuple[int, int], groups: int = 2, episodes: int = 8
) -> None:
    """Write the rows of episodes as samples; advantages are drawn.

    Args:
        path: the Parquet file.
        layout: a key of ``LAYOUTS``.
        vocabulary: number of token ids.
        turns: fewest and most turns of an episode.
        groups: number of groups.
        episodes: number of episodes in each group.
    """
    draws = generator(key("turns"))

    def ids(count: int) -> Ids:
        return tuple(draws.integers(RESERVED, vocabulary, count).tolist())

    def about(count: int) -> Ids:
        return ids(int(draws.integers(count * 3 // 4, count * 5 // 4 + 1)))

    tail, rows = ids(TAIL), list[dict[str, object]]()
    for group in range(groups):
        task = ids(TASK)
        for episode in range(episodes):
            count = int(draws.integers(turns[0], turns[1] + 1))
            lessons, observations, answers = (
                [about(size) for _ in range(count)] for size in (LESSONS, OBSERVATION, ANSWER)
            )
            said = EpisodeTokens(task, lessons, observations, answers, tail)
            rows += _rows(f"{group}-{episode}", layout, said, float(draws.normal()))
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES), path)


def _rows(name: str, layout: str, said: EpisodeTokens, advantage: float) -> Iterator[dict[str, object]]:
    for turn, answer in enumerate(said.answers):
        yield {
            "episode": name,
            "group": name.partition("-")[0],
            "turn": turn,
            "prompt_ids": LAYOUTS[layout](said, turn),
            "token_ids": answer,
            "logprobs": [-9.0] * len(answer),
            "advantage": [advantage] * len(answer),
            "value": [],
            "return": [],
        }
