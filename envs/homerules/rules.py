"""Rules of a household: states of an episode, their observations, and pure transitions between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from coevo.envs.base import Step
from coevo.envs.homerules.house_conventions import Facts
from coevo.envs.homerules.house_world import (
    DONE,
    FAMILIES,
    HALL,
    LEVELS,
    NOTHING,
    PARTLY,
    REFUSED,
    TARGETS,
    UNDONE,
    Family,
    Goal,
    HouseView,
    fails,
    inside,
    works,
)


@dataclass(frozen=True, slots=True)
class EpisodeSetting:
    """Constants of an episode: the goal, the house's facts about it, and the maximum number of steps."""

    goal: Goal
    family: Family
    places: tuple[str, ...]
    storage: str
    appliance: str
    limit: int


@dataclass(frozen=True, slots=True)
class HouseState:
    """A point of an episode.

    Attributes:
        setting: constants of the episode.
        at: place of the agent.
        seen: closed places that it has opened, in order.
        held: True if it holds the object.
        treated: True if the held object has been treated.
        placed: number of objects at the target.
        spoiled: True if a wrong appliance has spoiled the task.
        steps: number of actions so far.
    """

    setting: EpisodeSetting
    at: str = HALL
    seen: tuple[str, ...] = ()
    held: bool = False
    treated: bool = False
    placed: int = 0
    spoiled: bool = False
    steps: int = 0

    @property
    def solved(self) -> bool:
        """True if the task is done."""
        family = self.setting.family
        return self.placed == family.count if family.count else self.treated

    @property
    def progress(self) -> float:
        """Fraction of the family's subgoals reached, 0 to 1."""
        reached = 2 * self.placed + self.held + (self.treated or (self.solved and self.setting.appliance != ""))
        return reached / self.setting.family.subgoals


def begin(goal: Goal, facts: Facts) -> HouseState:
    """First state of a task in a house."""
    level = LEVELS[facts.level]
    appliance = facts.appliance.get(goal.family, "")
    storage, limit = facts.storage[goal.object], level.limits[goal.family]
    return HouseState(EpisodeSetting(goal, FAMILIES[goal.family], level.places, storage, appliance, limit))


def observe(state: HouseState) -> str:
    """Observation of a state: enough to act on without remembering earlier turns."""
    setting = state.setting
    held = setting.goal.object if state.held else ""
    effect = setting.family.effect if state.treated else ""
    found = setting.storage if setting.storage in state.seen and not state.held else ""
    return HouseView(state.at, held, effect, state.seen, found).text()


def advance(state: HouseState, action: str) -> Step[HouseState]:
    """Take one action; one that cannot be parsed or done changes nothing but costs a step."""
    later = replace(state, steps=state.steps + 1)
    match action.split():
        case [verb, noun] if verb in _MOVES:
            moved = _MOVES[verb](later, noun)
        case _:
            moved = None
    after, feedback = moved or (later, REFUSED)
    ended = after.solved or after.spoiled
    out_of_steps = not ended and after.steps >= after.setting.limit
    return Step(
        state=after,
        observation=observe(after),
        feedback=feedback,
        reward=float(after.solved),
        done=ended or out_of_steps,
        success=after.solved,
        valid=moved is not None,
        truncated=out_of_steps,
        progress=after.progress,
    )


_Moved = tuple[HouseState, str] | None


def _go(state: HouseState, place: str) -> _Moved:
    setting = state.setting
    if place not in setting.places:
        return None
    seen = state.seen if place in state.seen else (*state.seen, place)
    here = place == setting.storage and not state.held
    feedback = inside(setting.goal.object, place) if here else NOTHING
    return replace(state, at=place, seen=seen), feedback


def _take(state: HouseState, thing: str) -> _Moved:
    goal = state.setting.goal
    if thing != goal.object or state.held or state.at != state.setting.storage:
        return None
    return replace(state, held=True), f"hold {thing}"


def _use(state: HouseState, appliance: str) -> _Moved:
    setting = state.setting
    if appliance not in setting.family.appliances or not state.held or state.treated:
        return None
    if appliance == setting.appliance:
        return replace(state, at=appliance, treated=True), works(setting.goal.family, appliance)
    return replace(state, at=appliance, spoiled=True), fails(setting.goal.family, appliance)


def _put(state: HouseState, target: str) -> _Moved:
    setting = state.setting
    if target not in TARGETS or not state.held:
        return None
    there = replace(state, at=target)
    if target != setting.goal.target or (setting.appliance and not state.treated):
        return there, UNDONE
    after = replace(there, held=False, treated=False, placed=state.placed + 1)
    return after, DONE if after.solved else PARTLY


_MOVES: Mapping[str, Callable[[HouseState, str], _Moved]] = {"go": _go, "take": _take, "use": _use, "put": _put}
