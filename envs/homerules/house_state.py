"""States of an episode: small frozen values and their observations."""

from dataclasses import dataclass

from coevo.envs.homerules.house_contents import FAMILIES, HALL, LEVELS, Family
from coevo.envs.homerules.house_conventions import Facts
from coevo.envs.homerules.house_language import Goal, HouseView


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
        lost: True if a wrong appliance has spoiled the task.
        steps: number of actions so far.
    """

    setting: EpisodeSetting
    at: str = HALL
    seen: tuple[str, ...] = ()
    held: bool = False
    treated: bool = False
    placed: int = 0
    lost: bool = False
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
