"""Vectorised environments that continue across updates (Context-lite section 4.1, early trajectory truncation).

Each has a slot, which holds one attempt. When that is over, the slot starts the next one at once; when the update's
turns are used up, the attempt is cut, and continues in the next update.

Unfinished episodes are an artifact of a revision: ``unfinished/episodes.parquet`` has a row per slot whose attempt
continues, the columns of an episode and the other inputs of its next turn. The environment's state is not stored;
replaying the recorded actions restores it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq

from coevo.envs.base import Environment, Step
from coevo.envs.failures import EpisodeFailure
from coevo.records.arrow import episodes_to_table, table_to_episodes
from coevo.records.draws import Key, extend
from coevo.records.episode import Episode, Turn
from coevo.tasks.play.play import Attempt, RolloutWorker, Running
from coevo.utilities.errors import CoevoError

DrawAttempt = Callable[[int, int], Attempt]
"""Function from slot and number within the update to a new attempt."""
Show = Callable[[Attempt], Attempt]
"""Function that adds this update's experience to an attempt."""


@dataclass(frozen=True)
class RolloutPlan:
    """Rollout of one update.

    Attributes:
        environments: their number.
        turns: turns per environment.
        draw: creates new attempts, without experience.
        show: adds experience to new and to continued attempts.
    """

    environments: int
    turns: int
    draw: DrawAttempt
    show: Show


class VectorisedEnvironments:
    """Attempts that continue across updates.

    Attributes:
        running: attempts by slot.
        earlier: shaped parts so far, joined, by episode id.
    """

    def __init__(self) -> None:
        self.running: dict[int, Running] = {}
        self.earlier: dict[str, Episode] = {}

    def play(self, worker: RolloutWorker, plan: RolloutPlan) -> list[Episode]:
        """Play the turns of one update; return parts of episodes in the order of slots, then of time."""
        self._take_up(worker, plan)
        return worker.paced(partial(self._loop, worker, plan), range(plan.environments))

    def _loop(self, worker: RolloutWorker, plan: RolloutPlan, slots: Sequence[int], halted: Event) -> list[Episode]:
        parts: dict[int, list[Episode]] = {slot: [] for slot in slots}
        for _ in range(plan.turns):
            if halted.is_set():
                break
            self._fill(worker, plan, parts)
            lives = [self.running[slot] for slot in slots]
            worker.play_turn([live for live in lives if not worker.is_over(live)])
            for slot, live in self._drop(worker, slots):
                parts[slot].append(live.part())
        for slot in slots:
            if slot in self.running:
                parts[slot].append(worker.cut(self.running[slot]))
        self._drop(worker, slots)
        return [part for slot in slots for part in parts[slot]]

    def whole(self, part: Episode) -> Episode:
        """Join a part with the earlier parts of its episode."""
        return part.after(self.earlier[part.id]) if part.start else part

    def finish(self, parts: Sequence[Episode]) -> list[Episode]:
        """Join final parts to whole episodes and return these; other parts are kept for the next update."""
        finished = []
        for part in parts:
            whole = self.whole(part)
            self.earlier.pop(part.id, None)
            if part.following:
                self.earlier[part.id] = whole
            else:
                finished.append(whole)
        return finished

    def _take_up(self, worker: RolloutWorker, plan: RolloutPlan) -> None:
        """Continue attempts with this update's experience; drop those whose slot no longer exists."""
        dropped = [self.running.pop(slot) for slot in sorted(self.running) if slot >= plan.environments]
        worker.release(dropped)
        for live in dropped:
            self.earlier.pop(live.attempt.id)
        for live in self.running.values():
            live.attempt = plan.show(live.attempt)

    def _fill(self, worker: RolloutWorker, plan: RolloutPlan, parts: Mapping[int, Sequence[Episode]]) -> None:
        """Start an attempt in every free slot of a loop."""
        free = [slot for slot in parts if slot not in self.running]
        numbers = [sum(part.start == 0 for part in parts[slot]) for slot in free]
        attempts = [plan.show(plan.draw(slot, number)) for slot, number in zip(free, numbers, strict=True)]
        self.running.update(zip(free, worker.begin(attempts), strict=True))

    def _drop(self, worker: RolloutWorker, slots: Sequence[int]) -> list[tuple[int, Running]]:
        """Free those of a loop's slots whose attempt is over, and return these."""
        lives = [(slot, self.running[slot]) for slot in slots if slot in self.running]
        over = [(slot, live) for slot, live in lives if worker.is_over(live)]
        worker.release([live for _, live in over])
        for slot, _ in over:
            del self.running[slot]
        return over


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


def write_unfinished(environments: VectorisedEnvironments, staging: Path) -> None:
    """Stage unfinished episodes for the commit, by slot; the table is empty if none continues."""
    directory = staging / FOLDER
    directory.mkdir(parents=True)
    lives = [environments.running[slot] for slot in sorted(environments.running)]
    table = episodes_to_table(environments.earlier[live.attempt.id] for live in lives)
    columns = {
        "slot": sorted(environments.running),
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


def take_up(environments: VectorisedEnvironments, env: Environment[object], unfinished: Unfinished) -> None:
    """Continue an episode in its slot.

    Raises:
        CoevoError: the environment answers the recorded actions differently.
    """
    environments.running[unfinished.slot] = replayed(env, unfinished)
    environments.earlier[unfinished.episode.id] = unfinished.episode


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
