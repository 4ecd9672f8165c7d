"""MineSweeper: its rules, its fields and their splits, notes about named fields, and exact risks."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.envs.minesweeper import MineSweeper
from coevo.envs.minesweeper.minefield import place
from coevo.envs.minesweeper.risks import risks
from coevo.records.draws import generator, key
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Task
from coevo.utilities.errors import CoevoError

DONE = Completion((), (), "", True)
NAMED = {"size": 5, "mines": 5, "fields": 8}


def field(*mines, size=6, spare=35, first=None, steps=36):
    data = {"size": size, "mines": list(mines), "spare": spare, "first": first, "steps": steps}
    return Task("minesweeper", f"{len(mines)} mines", "clear every cell without a mine", "", "train", data)


def played(env, task, actions):
    (state, _), steps = env.start(task), []
    for action in actions:
        (step,) = env.step([state], [action])
        steps.append(step)
        state = step.state
    return steps


def around(cell, size):
    row, column = divmod(cell, size)
    near = [(row + down, column + right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    return {y * size + x for y, x in near if 0 <= y < size and 0 <= x < size} - {cell}


def flooded(cell, mines, size):
    """Cells that open with a cell."""
    found, waiting = {cell}, [cell]
    while waiting:
        near = around(waiting.pop(), size)
        if not near & mines:
            waiting += near - found
            found |= near
    return found


@given(seed=st.integers(0, 500), order=st.permutations(range(36)))
def test_a_step_does_as_the_rules_say_and_pays_as_the_papers_do(seed, order):
    env = MineSweeper(mines=2 + seed % 5)
    (task,) = env.sample(1, key(seed))
    mines, opened = {*task.data["mines"]}, set()
    if order[0] in mines:
        mines = mines - {order[0]} | {task.data["spare"]}
    for cell, step in zip(order, played(env, task, [place(cell, 6) for cell in order]), strict=True):
        new = flooded(cell, mines, 6) - opened
        opened |= set() if cell in mines else new
        won, lost, idle = len(opened) == 36 - len(mines), cell in mines, not new
        assert step.reward == (-0.1 if lost else 10 if won and not idle else -1 if idle else 2 if len(new) > 1 else 0.5)
        assert (step.success, step.done, step.valid) == (won, won or lost, True)
        shown = step.observation.split()
        for each in range(36):
            closed = "*" if lost and each in mines else "?"
            assert shown[each] == (str(len(around(each, 6) & mines) or ".") if each in opened else closed)
        if step.done:
            break


def test_the_first_cell_is_safe_wherever_it_is():
    env, (task,) = MineSweeper(), MineSweeper().sample(1, key("first"))
    assert all(played(env, task, [place(cell, 6)])[0].reward > 0 for cell in range(36))


@pytest.mark.parametrize(
    ("action", "says", "valid"),
    [
        ("(1, 6)", "opened (1,6)", True), (" 1 6 ", "opened (1,6)", True), ("(1,6)", "opened (1,6)", True),
        ("(2, 1)", "mine at (2,1)", True), ("(1, 1)", "(1,1) is open", True), ("(7, 1)", "no cell there", False),
        ("(0, 1)", "nothing happens", False), ("16", "nothing happens", False), ("(1, 6", "opened (1,6)", True),
        ("(१, ६)", "nothing happens", False), ("(1, 6) (2, 6)", "nothing happens", False),
        ("", "nothing happens", False), ("(" + "1" * 40 + ", 1)", "nothing happens", False),
    ],
)  # fmt: skip
def test_an_action_is_read_and_answered(action, says, valid):
    step = played(MineSweeper(), field(6, 11, 35, spare=20), ["(1, 1)", action])[1]
    assert (step.feedback, step.valid) == (says, valid)


def test_risks_are_those_of_every_placement_that_agrees():
    rng = generator(key("risks"))
    for _ in range(12):
        mines = {int(cell) for cell in rng.permutation(25)[:4]}
        opened = set().union(*(flooded(int(cell), mines, 5) for cell in rng.permutation(25)[:8] if cell not in mines))
        shown = [str(len(around(cell, 5) & mines) or ".") if cell in opened else "?" for cell in range(25)]
        known = frozenset(sorted(mines)[: int(rng.integers(2))])
        agreeing = [
            set(drawn) for drawn in combinations(sorted({*range(25)} - opened), 4)
            if known <= {*drawn} and all(str(len(around(cell, 5) & {*drawn}) or ".") == shown[cell] for cell in opened)
        ]  # fmt: skip
        found = risks("".join(shown), 5, 4, known)
        expected = {cell: sum(cell in drawn for drawn in agreeing) / len(agreeing) for cell in {*range(25)} - opened}
        assert found == pytest.approx(expected)


def test_notes_that_cannot_be_true_are_ignored_and_true_ones_avoid_mines(play):
    env = MineSweeper(**NAMED)
    tasks = env.panel("held-out", 40).tasks
    blind, told = (sum(play(env, task, notes(task), key(0))[-1].success for task in tasks) for notes in (none, true))
    assert blind < told == 40
    assert all(play(env, task, ["mine at (1,1)"] * 3 + ["mine at (99,9)"], key(0)) for task in tasks)


def none(task):
    return []


def true(task):
    return [f"{task.scope} mine at {place(mine, 5)}" for mine in task.data["mines"]]


@pytest.mark.parametrize(("mines", "least"), [(3, 0.95), (4, 0.93)])
def test_the_expert_wins_nearly_always(mines, least, play):
    env = MineSweeper(mines=mines)
    tasks = (*env.sample(250, key("expert")), *env.panel("held-out", 250).tasks)
    won = [play(env, task, (), key(0))[-1].success for task in tasks]
    assert sum(won) / len(won) >= least


def test_no_field_is_in_two_splits_not_even_turned_or_mirrored():
    env = MineSweeper()
    parts = {
        "train": env.sample(150, key("part")),
        "fresh": env.probe(60, key("part")).tasks,
        "held-out": env.panel("held-out", 60).tasks,
    }
    forms = {name: {least_form(task) for task in tasks} for name, tasks in parts.items()}
    assert not forms["train"] & forms["fresh"] | forms["train"] & forms["held-out"] | forms["fresh"] & forms["held-out"]
    assert {task.kind for task in env.panel("two-more", 5).tasks} == {"5 mines"}


def least_form(task):
    places = [divmod(cell, 6) for cell in task.data["mines"]]
    turned = [
        [(x, 5 - y) for y, x in places],
        places,
        [(5 - y, 5 - x) for y, x in places],
        [(5 - x, y) for y, x in places],
    ]
    return min(tuple(sorted(form)) for each in turned for form in (each, [(x, y) for y, x in each]))


def test_named_fields_keep_their_mines_and_hold_out_where_tasks_begin():
    env = MineSweeper(**NAMED)
    train, held = env.sample(100, key("named")), env.panel("held-out", 40).tasks
    mines = {(task.scope, *task.data["mines"]) for task in (*train, *held)}
    assert len(mines) == len({scope for scope, *_ in mines}) == 8
    assert not {(task.scope, task.data["first"]) for task in train} & {
        (task.scope, task.data["first"]) for task in held
    }
    assert [task.id for task in env.panel("no-bank", 40).tasks] == [task.id for task in held]
    assert all(task.data["first"] not in task.data["mines"] for task in train)


def test_the_banks_of_panels_and_what_an_episode_reveals():
    env = MineSweeper(**NAMED)
    told = {(entry.scope, entry.strategy) for entry in env.panel_bank("other-mines")}
    assert told == {(task.scope, note) for task in env.panel("other-mines", 40).tasks for note in true(task)}
    assert env.panel_bank("no-bank") == []
    assert env.panel_bank("held-out") is None
    (task,) = env.sample(1, key("hit"))
    mine = task.data["mines"][0]
    (step,) = played(env, task, [place(mine, 5)])
    assert (step.feedback, step.reward, step.done, step.success) == (f"mine at {place(mine, 5)}", -0.1, True, False)
    turns = tuple(Turn("", (), DONE, "", said, 0.0, True) for said in ("opened (1,2)", step.feedback))
    found = env.revealed(Episode("0/rollout/task/0", task, 0, 0, turns, False, False))
    assert [(each.note, each.step) for each in found] == [(step.feedback, 1)]
    assert MineSweeper().revealed(Episode("0/rollout/task/0", task, 0, 0, turns, False, False)) == []


def test_places_beside_symbols_show_the_same_field_and_play_the_same():
    grid, places = MineSweeper(**NAMED), MineSweeper(**NAMED, view="places")
    for plain, task in zip(grid.panel("held-out", 16).tasks, places.panel("held-out", 16).tasks, strict=True):
        assert {**plain.data, "view": "places"} == dict(task.data)
        order = [place(cell, 5) for cell in range(25) if cell not in task.data["mines"]]
        for step, other in zip(played(grid, plain, order), played(places, task, order), strict=True):
            symbols = zip(map(place, range(25), [5] * 25), step.observation.split(), strict=True)
            assert other.observation.split() == [f"{where}{symbol}" for where, symbol in symbols]
            assert (other.feedback, other.reward, other.done) == (step.feedback, step.reward, step.done)


@pytest.mark.parametrize("view", ["grid", "places"])
def test_the_vocabulary_holds_every_word_of_what_cloning_shows(view):
    env = MineSweeper(size=4, mines=4, fields=8, view=view)
    shown = [turn for draw in range(6) for turn in env.demonstrations(20, 0, key("shown", draw))]
    said = " ".join(
        " ".join((turn.moment.instruction, turn.moment.observation, turn.answer.thought, turn.answer.action,
                  *(note.text for note in turn.moment.lessons), *(past.feedback for past in turn.moment.history)))
        for turn in shown
    )  # fmt: skip
    assert {*said.split()} <= {*env.vocabulary}


def test_what_cloning_shows_opens_no_mine_that_a_note_names():
    env = MineSweeper(size=4, mines=4, fields=8, view="places")
    for turn in env.demonstrations(60, 0, key("obeyed")):
        assert not any(note.text.endswith(f"mine at {turn.answer.action}") for note in turn.moment.lessons)


def test_the_limits_of_fields_are_said_in_one_line():
    env = MineSweeper(**NAMED)
    with pytest.raises(CoevoError, match=r"'held-out' has 48 tasks with env\.fields=8, not 49: request fewer"):
        env.panel("held-out", 49)
    with pytest.raises(CoevoError, match=r"has \d+ fields of 5 x 5 with 2 mines for held-out, not 2000: request fewer"):
        MineSweeper(size=5, mines=2).panel("held-out", 2000)
    for wrong in (field(1, 1), field(36), field(2, spare=2), field(1, size=1)):
        with pytest.raises(CoevoError, match="all different, on 2 x 2 to 16 x 16 cells"):
            env.start(wrong)
