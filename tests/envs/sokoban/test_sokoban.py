"""Sokoban: its rules, its boards and their splits, and shortest solutions."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.envs.sokoban import Sokoban
from coevo.envs.sokoban.board import ACTIONS, read
from coevo.envs.sokoban.board_draws import split_of
from coevo.envs.sokoban.solver import solution
from coevo.records.draws import key
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

OPTIONS = [
    {}, {"boxes": 1, "steps": 16}, {"size": 7, "boxes": 3},
    pytest.param({"size": 8, "boxes": 3, "steps": 60}, marks=pytest.mark.full),
]  # fmt: skip
UP_DOWN = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def board(*rows, steps=30):
    return Task("sokoban", "1 box", "push 1 box onto targets", "", "train", {"board": list(rows), "steps": steps})


def played(env, task, actions):
    (state, _), steps = env.start(task), []
    for action in actions:
        (step,) = env.step([state], [action])
        steps.append(step)
        state = step.state
    return steps


def moved(grid, action):
    """One action on rows of symbols, by the rules as they are written in the guide; the change in boxes on targets."""
    (row, column), (down, right) = np.argwhere((grid == "P") | (grid == "S"))[0], UP_DOWN[action]
    ahead, beyond = (row + down, column + right), (row + 2 * down, column + 2 * right)
    after, on = grid.copy(), {"X": False, "√": True}
    if grid[ahead] == "#" or (grid[ahead] in on and grid[beyond] not in "_O"):
        return after, 0
    gained = 0
    if grid[ahead] in on:
        gained = int(grid[beyond] == "O") - on[grid[ahead]]
        after[beyond] = "√" if grid[beyond] == "O" else "X"
    after[ahead] = "S" if grid[ahead] in "O√" else "P"
    after[row, column] = "O" if grid[row, column] == "S" else "_"
    return after, gained


@given(seed=st.integers(0, 500), actions=st.lists(st.sampled_from(ACTIONS), max_size=30))
def test_a_step_does_as_the_rules_say_and_pays_as_the_papers_do(seed, actions):
    env = Sokoban(boxes=1 + seed % 3)
    (task,) = env.sample(1, key(seed))
    grid = np.array([list(row) for row in task.data["board"]])
    for number, step in enumerate(played(env, task, actions), start=1):
        grid, gained = moved(grid, actions[number - 1])
        shown, solved = np.array([row.split() for row in step.observation.split("\n")]), "X" not in grid
        assert (shown == grid).all()
        assert step.reward == pytest.approx(-0.1 + gained + 10 * solved)
        assert (step.success, step.done) == (solved, solved or number == 30)
        assert step.progress == (grid == "√").sum() / ((grid == "√") | (grid == "X")).sum()
        if step.done:
            break


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_expert_solves_every_board_within_the_step_limit(options, play):
    env = Sokoban(**options)
    for task in (*env.sample(12, key("expert")), *(task for name in env.panels for task in env.panel(name, 12).tasks)):
        assert play(env, task, (), key(0))[-1].success


def test_a_solution_is_as_short_as_any_and_none_where_there_is_none():
    for task in (*Sokoban(boxes=1).sample(10, key("short")), *Sokoban(boxes=2).sample(10, key("short"))):
        start = read(task.data["board"], 30)
        assert len(solution(start)) == shortest(start)
    stuck = read(("######", "#X___#", "#__P_#", "#__O_#", "#____#", "######"), 30)
    assert solution(stuck) is shortest(stuck) is None


def shortest(start):
    """Length of a shortest solution by breadth, over the environment's own steps."""
    env, seen, waiting = Sokoban(), {(start.player, start.boxes)}, deque([(start, 0)])
    while waiting:
        state, length = waiting.popleft()
        if state.solved:
            return length
        for step in env.step([state._replace(steps=0)] * 4, ACTIONS):
            if (position := (step.state.player, step.state.boxes)) not in seen:
                seen.add(position)
                waiting.append((step.state, length + 1))
    return None


def test_no_board_is_in_two_splits_not_even_turned_or_mirrored():
    env = Sokoban()
    parts = {
        "train": env.sample(80, key("part")),
        "fresh": env.probe(40, key("part")).tasks,
        "held-out": [task for name in env.panels for task in env.panel(name, 40).tasks],
    }
    for split, tasks in parts.items():
        for task in tasks:
            grid = np.array([list(row) for row in task.data["board"]])
            forms = [np.rot90(side, turns) for side in (grid, grid.T) for turns in range(4)]
            assert {split_of(tuple(map("".join, form))) for form in forms} == {split}


def test_feedback_says_what_happened():
    env = Sokoban()
    task = board("######", "#____#", "#_PXO#", "#__X_#", "#__O_#", "######")
    said = [step.feedback for step in played(env, task, ["right", "left", "up", "up", "Down ", "dance", ""])]
    assert said == [
        "pushed a box right onto a target", "moved left", "moved up", "up is blocked by a wall", "moved down",
        "nothing happens", "nothing happens",
    ]  # fmt: skip
    corner = played(env, board("######", "#____#", "#_PX_#", "#___O#", "#____#", "######"), ["right", "right"])
    assert [step.feedback for step in corner] == [
        "pushed a box right",
        "right is blocked by a box with a wall behind it",
    ]
    dead = played(env, board("######", "#____#", "#_X__#", "#_P_O#", "#____#", "######"), ["up"])
    assert dead[0].feedback == "pushed a box up . it can no longer reach a target from 2 3"


def test_an_episode_ends_at_its_limit_and_an_unreadable_action_counts():
    steps = played(
        Sokoban(), board("######", "#____#", "#_PXO#", "#____#", "#____#", "######", steps=10), ["dance"] * 10
    )
    assert [step.valid for step in steps] == [False] * 10
    assert [(step.done, step.truncated) for step in steps] == [(False, False)] * 9 + [(True, True)]


@pytest.mark.parametrize(
    "rows",
    [
        (), ("###", "#P#"), ("####", "#PX#", "#_O#", "###_"), ("#####", "#PXO#", "#####", "#####x"),
        ("#####", "#PXO#", "#PXO#", "#####"), ("#####", "#PX_#", "#####"), ("#####", "#P__#", "#####"),
        ("#####", "#PXQ#", "#####"),
    ],
)  # fmt: skip
def test_what_is_no_board_is_refused_in_one_line(rows):
    with pytest.raises(CoevoError, match="as many boxes as targets") as caught:
        Sokoban().start(board(*rows))
    assert "\n" not in str(caught.value)


def test_a_small_size_has_few_boards_and_says_so():
    env = Sokoban(size=5, steps=10, boxes=1)
    held = {task.id for task in env.panel("held-out", 30).tasks}
    assert len(held) == 30
    assert not held & {task.id for task in env.sample(30, key("small"))}
    with pytest.raises(CoevoError, match=r"has \d+ boards of 5 x 5 with 1 box\(es\) for train, not 999: request fewer"):
        env.sample(999, key("all"))
