"""Cloning material and reading probe, in worlds that are never used for training or evaluation."""

from coevo.configs.env import BabyAIRulesConfig
from coevo.envs.babyai.rules.room_episode import begin
from coevo.envs.babyai.rules.rules_expert import answer
from coevo.envs.babyai.rules.rules_tasks import RulesTaskPlan, draw_plan, task_of
from coevo.envs.babyai.rules.tower_world import COLOURS, TOWERS, custom, fresh, note
from coevo.envs.base import Probe
from coevo.records.demonstration import Demonstration, Moment, Note, PastTurn
from coevo.records.draws import Key, extend, generator

GUIDE = """An action is one of these lines, in exactly this form:
turn left: turn to your left.
turn right: turn to your right.
go forward: move one step; you cannot enter a cell with a wall, a thing or a closed door.
pick up: take the thing in the cell in front of you; you can carry one.
drop: put down the thing that you carry, in the free cell in front of you.
toggle: try the thing that you carry on the door in front of you.
Each tower has a custom of its own: its door obeys one colour or one kind of thing. The first thing that you try on the
door ends the task. A box that you toggle is gone."""
MOST_OTHERS = 2
"""Maximum number of notes about other towers in a prompt."""
TOLD, MISLED = 0.8, 0.125
"""Share of episodes with a note about their tower, and share of those notes that are false."""


def episodes(config: BabyAIRulesConfig, count: int, draw: Key) -> list[Demonstration]:
    """Turns of ``count`` episodes, one after the other, each of a fresh world."""
    every = BabyAIRulesConfig(towers=len(TOWERS), steps=config.steps)
    return [turn for index in range(count) for turn in _episode(every, extend(draw, "episode", index))]


def probe(config: BabyAIRulesConfig, size: int, draw: Key) -> Probe:
    """``size`` tasks of a fresh world, each with the note of its tower: once true, once false."""
    world, rng = fresh(draw), generator(extend(draw, "tasks"))
    plans = [draw_plan(world, config, rng) for _ in range(size)]
    right = tuple((note(plan.tower, plan.attribute),) for plan in plans)
    wrong = tuple((note(plan.tower, _false(plan)),) for plan in plans)
    return Probe(tuple(task_of(plan, "probe") for plan in plans), right, wrong)


def _episode(config: BabyAIRulesConfig, draw: Key) -> list[Demonstration]:
    world, rng = fresh(draw), generator(extend(draw, "lessons"))
    plan = draw_plan(world, config, rng)
    lessons = [note(tower, custom(world, tower)) for tower in _others(plan, int(rng.integers(MOST_OTHERS + 1)), draw)]
    if rng.random() < TOLD:
        lessons.append(note(plan.tower, _false(plan) if rng.random() < MISLED else plan.attribute))
    order = rng.permutation(len(lessons))
    return _play(plan, tuple(lessons[index] for index in order), extend(draw, "answer"))


def _false(plan: RulesTaskPlan) -> str:
    """Attribute of the thing that does not open the door."""
    wrong = next(name for name in plan.names if plan.attribute not in name)
    return wrong.colour if plan.attribute in COLOURS else wrong.thing


def _others(plan: RulesTaskPlan, count: int, draw: Key) -> list[str]:
    others = [tower for tower in TOWERS if tower != plan.tower]
    return [others[index] for index in generator(extend(draw, "others")).permutation(len(others))[:count]]


def _play(plan: RulesTaskPlan, lessons: tuple[str, ...], draw: Key) -> list[Demonstration]:
    state, shown, done = begin(plan), list[Demonstration](), False
    observation, history, instruction = state.observation(), tuple[PastTurn, ...](), plan.instruction()
    while not done:
        said = answer(state, lessons, extend(draw, len(history)))
        shown.append(Demonstration(Moment(instruction, tuple(map(Note, lessons)), history, observation, GUIDE), said))
        step = state.simulator.step(state, said.action)
        history = (*history, PastTurn(observation, said.action, step.feedback))
        state, observation, done = step.state, step.observation, step.done
    return shown
