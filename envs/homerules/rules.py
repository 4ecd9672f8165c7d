"""Rules of a household: pure transitions from state to state."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from coevo.envs.base import Step
from coevo.envs.homerules.house_contents import DONE, NOTHING, PARTLY, REFUSED, TARGETS, UNDONE
from coevo.envs.homerules.house_language import fails, inside, works
from coevo.envs.homerules.house_state import HouseState, observe


def advance(state: HouseState, action: str) -> Step[HouseState]:
    """Take one action; one that cannot be parsed or done changes nothing but costs a step."""
    later = replace(state, steps=state.steps + 1)
    match action.split():
        case [verb, noun] if verb in _MOVES:
            moved = _MOVES[verb](later, noun)
        case _:
            moved = None
    after, feedback = moved or (later, REFUSED)
    ended = after.solved or after.lost
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
    return replace(state, at=appliance, lost=True), fails(setting.goal.family, appliance)


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
