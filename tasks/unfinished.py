"""Unfinished episodes as an artifact of a revision, and the way back to where they were.

``unfinished/episodes.parquet`` has a row for each slot whose attempt goes on: the columns of an episode, and what else
its next turn depends on. The environment's state is not kept: it is what the recorded actions lead to.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from configs.errors import CoevoError
from envs.base import Environment, Step
from records.arrow import EPISODES, episodes_to_table, table_to_episodes
from records.draws import Key, extend
from records.episode import Episode, Turn
from tasks.play import Attempt, Running
from tasks.slots import Slots

FOLDER = "unfinished"
"""Name of the artifact."""
FILE = "episodes.parquet"
PLACE = pa.schema([("slot", pa.int32()), ("stage", pa.string()), ("key", pa.string()), ("observation", pa.string())])
"""What a row has beside the columns of an episode; ``key`` is JSON, the observation is that of the next turn."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An episode that goes on.

    Attributes:
        slot: where it is played.
        stage: of its attempt.
        key: root of its draws.
        observation: what the agent sees next.
        episode: its turns so far, as they were shaped.
    """

    slot: int
    stage: str
    key: Key
    observation: str
    episode: Episode


def write_unfinished(slots: Slots, staging: Path) -> None:
    """Stage what goes on for the commit, by slot; an empty table where nothing does."""
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
    """What a committed artifact holds."""
    table = pq.read_table(directory / FILE)
    places = table.select(PLACE.names).to_pylist()
    episodes = table_to_episodes(table.select(EPISODES.names))
    return [
        Unfinished(**{**place, "key": Key(tuple(json.loads(place["key"])))}, episode=episode)
        for place, episode in zip(places, episodes, strict=True)
    ]


def forked(unfinished: Unfinished, revision: int) -> Unfinished:
    """The same in a history that begins anew at a revision: another episode, with draws of its own from here on."""
    stage, episode = f"{unfinished.stage}+{revision}", unfinished.episode
    name = Episode.name(episode.revision, stage, episode.task, episode.replica)
    key = extend(unfinished.key, "restored", revision)
    return replace(unfinished, stage=stage, key=key, episode=replace(episode, id=name))


def take_up(slots: Slots, env: Environment[object], unfinished: Unfinished) -> None:
    """Put it into its slot, where it was.

    Raises:
        CoevoError: the environment does not answer the recorded actions as it did.
    """
    slots.running[unfinished.slot] = replayed(env, unfinished)
    slots.earlier[unfinished.episode.id] = unfinished.episode


def replayed(env: Environment[object], unfinished: Unfinished) -> Running:
    """The attempt after its recorded actions.

    Raises:
        CoevoError: the environment does not answer them as it did.
    """
    episode = unfinished.episode
    attempt = Attempt(episode.task, episode.replica, (), unfinished.stage, episode.revision, unfinished.key)
    state, observation = env.start(episode.task)
    seen, last = [observation], None
    for number, turn in enumerate(episode.turns):
        (last,) = env.step([state], [turn.action])
        _compare(episode, number, turn, last)
        state = last.state
        seen.append(last.observation)
    for number, expected in enumerate([*(turn.observation for turn in episode.turns), unfinished.observation]):
        if seen[number] != expected:
            raise _changed(episode, number, "observation", expected, seen[number])
    return Running(attempt, state, seen[-1], list(episode.turns), last, told=len(episode.turns))


def _compare(episode: Episode, number: int, turn: Turn, step: Step[object]) -> None:
    played = {"feedback": turn.feedback, "reward": turn.reward, "valid": turn.valid, "done": False}
    for name, expected in played.items():
        found = getattr(step, name)
        if found != expected:
            raise _changed(episode, number, name, expected, found)


def _changed(episode: Episode, number: int, what: str, expected: object, found: object) -> CoevoError:
    return CoevoError(
        f"unfinished episode {episode.id}: replayed, turn {number} has {what} {found!r:.80}, when it was played "
        f"{expected!r:.80}: go on with the {episode.task.env} that played it, or leave its unfinished episodes behind, "
        "coevo branch RUN NAME rollout.turns=null"
    )
