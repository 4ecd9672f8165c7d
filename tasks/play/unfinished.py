"""Unfinished episodes as an artifact of a revision, and their continuation.

``unfinished/episodes.parquet`` has a row per slot whose attempt continues: the columns of an episode, and the other
inputs of its next turn. The environment's state is not stored; replaying the recorded actions restores it.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from coevo.envs.base import Environment, Step
from coevo.envs.failures import EpisodeFailure
from coevo.records.arrow import episodes_to_table, table_to_episodes
from coevo.records.draws import Key, extend
from coevo.records.episode import Episode, Turn
from coevo.tasks.play.attempt import Attempt, Running
from coevo.tasks.play.slots import Slots
from coevo.utilities.errors import CoevoError

FOLDER = "unfinished"
"""Name of the artifact."""
FILE = "episodes.parquet"
PLACE = pa.schema([("slot", pa.int32()), ("stage", pa.string()), ("key", pa.string()), ("observation", pa.string())])
"""Columns in addition to those of an episode; ``key`` is JSON, ``observation`` is that of the next turn."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An episode that continues.

    Attributes:
        slot: its slot.
        stage: stage of its attempt.
        key: root of its draws.
        observation: observation of the next turn.
        episode: its turns so far, shaped.
    """

    slot: int
    stage: str
    key: Key
    observation: str
    episode: Episode


def write_unfinished(slots: Slots, staging: Path) -> None:
    """Stage unfinished episodes for the commit, by slot; the table is empty if none continues."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    lives = [slots.running[slot] for slot in sorted(slots.running)]
    table = episodes_to_table(slots.earlier[live.attempt.id] for live in lives)
    columns = {
        "slot": sorted(slots.running),
        "stage": [live.attempt.stage for live in lives],
        "key": [json.dumps(live.attempt.key) for live in lives],
        "observation": [live.observation for live in lives],
    }
    for field in PLACE:
        table = table.append_column(field, pa.array(columns[field.name], field.type))
    pq.write_table(table, directory / FILE, compression="zstd")


def read_unfinished(directory: Path) -> list[Unfinished]:
    """Read a committed artifact."""
    table = pq.read_table(directory / FILE)
    places = table.select(PLACE.names).to_pylist()
    episodes = table_to_episodes(table.drop_columns(PLACE.names))
    return [
        Unfinished(**{**index, "key": Key(tuple(json.loads(index["key"])))}, episode=episode)
        for index, episode in zip(places, episodes, strict=True)
    ]


def forked(unfinished: Unfinished, revision: int) -> Unfinished:
    """Copy for a history that restarts at a revision: another episode, with its own draws from here on."""
    stage, episode = f"{unfinished.stage}+{revision}", unfinished.episode
    name = Episode.name(episode.revision, stage, episode.task, episode.replica)
    key = extend(unfinished.key, "restored", revision)
    return replace(unfinished, stage=stage, key=key, episode=replace(episode, id=name))


def take_up(slots: Slots, env: Environment[object], unfinished: Unfinished) -> None:
    """Continue an episode in its slot.

    Raises:
        CoevoError: the environment answers the recorded actions differently.
    """
    slots.running[unfinished.slot] = replayed(env, unfinished)
    slots.earlier[unfinished.episode.id] = unfinished.episode


def replayed(env: Environment[object], unfinished: Unfinished) -> Running:
    """Return the attempt after its recorded actions; it is lost if the environment fails twice.

    Raises:
        CoevoError: the environment answers them differently.
    """
    live = _replayed(env, unfinished)
    return _replayed(env, unfinished) if live.lost else live


def _replayed(env: Environment[object], unfinished: Unfinished) -> Running:
    episode = unfinished.episode
    attempt = Attempt(episode.task, episode.replica, (), unfinished.stage, episode.revision, unfinished.key)
    (start,) = env.try_start([episode.task])
    live = Running.begun(attempt, start, env.try_guide(episode.task))
    live.turns, live.returned = list(episode.turns), len(episode.turns)
    seen = [live.observation]
    for number, turn in enumerate([] if live.lost else episode.turns):
        (step,) = env.try_step([live.state], [turn.action])
        if isinstance(step, EpisodeFailure):
            live.lost = f"{step} (turn {number}, replayed)"
            break
        _compare(episode, number, turn, step)
        live.state, live.observation, live.last = step.state, step.observation, step
        seen.append(step.observation)
    if live.lost:
        return live
    for number, expected in enumerate([*(turn.observation for turn in episode.turns), unfinished.observation]):
        if seen[number] != expected:
            raise _changed(episode, number, "observation", expected, seen[number])
    return live


def _compare(episode: Episode, number: int, turn: Turn, step: Step[object]) -> None:
    played = {"feedback": turn.feedback, "reward": turn.reward, "valid": turn.valid, "done": False}
    if turn.fault:
        del played["valid"]  # the answer was at fault, whatever the environment makes of no action
    for name, expected in played.items():
        found = getattr(step, name)
        if found != expected:
            raise _changed(episode, number, name, expected, found)


def _changed(episode: Episode, number: int, what: str, expected: object, found: object) -> CoevoError:
    return CoevoError(
        f"unfinished episode {episode.id}: replayed, turn {number} has {what} {found!r:.80}, when it was played "
        f"{expected!r:.80}: continue with the {episode.task.env} that played it, or leave its unfinished episodes "
        "behind, coevo branch RUN NAME rollout.turns=null"
    )
