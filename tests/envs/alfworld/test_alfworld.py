"""ALFWorld: made games of all families, files of the authors' form, and what the engine in its workers keeps.

Tests with the engine need the extra alfworld, here or in the interpreter that ALFWORLD_PYTHON names.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import psutil
import pytest

from coevo.configs.env import PluginEnvConfig
from coevo.envs.alfworld import AlfWorld
from coevo.envs.alfworld.alfworld import AlfWorldSimulator
from coevo.envs.alfworld.household import (
    ABLE,
    FAMILIES,
    FITS,
    FURNITURE,
    LAMP,
    HouseholdGoal,
    furniture,
    is_held_out,
    problem,
)
from coevo.envs.alfworld.pddl_engine import command_of, names_of
from coevo.envs.base import Step
from coevo.envs.failures import EpisodeFailure
from coevo.envs.registry import make
from coevo.records.draws import generator, key
from coevo.records.task import Task
from coevo.tasks.checks.environment_check import check_environment
from coevo.tasks.play.turns import turn_by_turn
from coevo.utilities.errors import CoevoError
from coevo.utilities.extras import lacks

PYTHON = os.environ.get("ALFWORLD_PYTHON") or (None if lacks("alfworld") else sys.executable)
engine = pytest.mark.skipif(PYTHON is None, reason="alfworld is not installed: install it, or set ALFWORLD_PYTHON")
STRINGS = 500
LONG = 1_000_000
GOAL = "(:goal (and (exists (?r # receptacle) (objectType {obj} {recep} {toggle})))))"


def environment(**options):
    other = None if sys.executable == PYTHON else PYTHON
    return make(PluginEnvConfig(type="alfworld", options=options, python=other))


def played(env, task, most=60):
    """Last step of the planner's episode."""
    turns = list(
        turn_by_turn(env, task, env.guide(task), lambda state, moment: env.advise(state, moment, key(0)), most)
    )
    return turns[-1].step


def test_every_family_is_drawn_in_turn_and_goals_are_of_one_split():
    env = AlfWorld()
    tasks = env.sample(120, key("families"))
    assert Counter(task.kind for task in tasks) == dict.fromkeys(FAMILIES, 20)
    assert tasks == AlfWorld().sample(120, key("families")) != env.sample(120, key("other"))
    assert len({task.id for task in tasks}) == 120
    seen, unseen = (env.panel(name, 60).tasks for name in env.panels)
    for part, held_out in ((tasks, False), (seen, True)):
        assert {is_held_out(HouseholdGoal(*(task.data[each] for each in HouseholdGoal._fields))) for task in part} == {
            held_out
        }
    trained = {task.scope for task in env.sample(2000, key("rooms"))}
    assert {task.scope for task in seen} <= trained
    assert not {task.scope for task in unseen} & trained
    assert env.panel("seen-rooms", 10).tasks == seen[:10]


@pytest.mark.parametrize(("name", "known"), [("seen-rooms", "802b81abf521"), ("unseen-rooms", "915eaa7a6ee2")])
def test_panels_never_change_unnoticed(name, known):
    assert AlfWorld().panel(name, 40).hash[:12] == known


def test_a_made_problem_has_the_goal_s_objects_elsewhere_than_they_have_to_go():
    for task in AlfWorld().sample(240, key("problems")):
        data, text = task.data, problem(task.data, GOAL)
        assert text == problem(json.loads(json.dumps(dict(data))), GOAL)
        pieces = furniture(data["room"], data["number"])
        facts = [line.strip("() ").split() for line in text.split("\n") if line.strip("() ")]
        things = [each[1] for each in facts if each[0] == "objectType" and each[2] == f"{data['object']}Type"]
        assert len(things) == 1 + (task.kind == "pick_two_obj_and_place")
        places = [each[2] for each in facts if each[0] == "inReceptacle" and each[1] in things]
        assert len(places) == len(things)
        assert not any(
            place.endswith(f"_{data['target']}") or place.startswith(f"{data['target']}_") for place in places
        )
        assert data["target"] in (*pieces, LAMP)
        assert text.count("(") == text.count(")")


def test_names_are_numbered_as_alfworld_numbers_them():
    ids = ["mug_bar_02", "mug_bar_01", "sink_bar_03_bar_sinkbasin", "sink_bar_04", "agent1", "mug_bar_05"]
    assert names_of(ids) == {
        "agent1": "agent1", "mug_bar_01": "mug 3", "mug_bar_02": "mug 2", "mug_bar_05": "mug 1",
        "sink_bar_03_bar_sinkbasin": "sinkbasin 1", "sink_bar_04": "sink 1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("action", "command"),
    [
        ("put mug 1 in/on desk 2", "move mug 1 to desk 2"),
        ("Put Mug 1 on  desk 2.", "move mug 1 to desk 2"),
        ("put mug 1 in desk 2", "move mug 1 to desk 2"),
        ("move mug 1 to desk 2", "move mug 1 to desk 2"),
        ("x" * 201, ""),
        ("\x00", "\x00"),
    ],
)
def test_older_phrases_name_the_same_command(action, command):
    assert command_of(action) == command


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"games": "mine"}, "made or official"),
        ({"families": []}, "families are some of"),
        ({"families": ["dance"]}, "families are some of"),
        ({"rooms": 0}, "rooms is 1 to"),
        ({"steps": 0}, "steps 1 to"),
        ({"path": "here"}, "path belongs to games=official"),
        ({"games": "official", "path": "/no/such"}, "ALFWORLD_DATA"),
    ],
)
def test_options_that_cannot_be_are_one_line(options, line):
    with pytest.raises(CoevoError, match=line) as caught:
        make(PluginEnvConfig(type="alfworld", options=options))
    assert "\n" not in str(caught.value)


def test_another_panel_and_another_environments_task_are_one_line():
    with pytest.raises(CoevoError, match="choose one of seen-rooms, unseen-rooms"):
        AlfWorld().panel("valid_seen", 1)
    with pytest.raises(CoevoError, match="'elsewhere', not 'alfworld'"):
        AlfWorldSimulator(None, False).open(Task("elsewhere", "put", "go", "", "train", {"steps": 3}), key(0))


def test_without_the_package_an_episode_is_lost_with_the_remedy(tmp_path):
    if sys.executable == PYTHON:
        pytest.skip("alfworld is installed in this interpreter")
    with closing(AlfWorld()) as env:
        (lost,) = env.try_start(env.sample(1, key(0)))
    assert isinstance(lost, EpisodeFailure)
    assert "pip install 'coevo[alfworld]'" in lost.detail


def official(folder, count=3, **changes):
    """Files in the form of the authors' games, made of made ones, with a grammar that must not be used."""
    env = AlfWorld(families=("pick_and_place_simple",))
    for split in ("train", "valid_seen", "valid_unseen"):
        for number, task in enumerate(env.sample(count, key("official", split))):
            goal = (
                "(:goal (and (exists (?r - receptacle) (exists (?o - object) (and (inReceptacle ?o ?r) "
                f"(objectType ?o {task.data['object']}Type) (receptacleType ?r {task.data['target']}Type))))))"
            )
            game = {
                "pddl_problem": problem(task.data, f"{goal})"),
                "grammar": f'{{"rhs": "Your task is to: {task.instruction}."}} {{__import__("os").abort()}}',
                "solvable": number > 0,
            }
            at = folder / "json_2.1.1" / split / f"pick_and_place_simple-{number}-None-Desk-308" / "trial_T1"
            at.mkdir(parents=True, exist_ok=True)
            (at / "game.tw-pddl").write_text(json.dumps(game | changes))
    return folder


def test_official_games_are_those_that_can_be_solved_and_named_by_their_content(tmp_path, monkeypatch):
    monkeypatch.setenv("ALFWORLD_DATA", str(official(tmp_path)))
    env = AlfWorld("official")
    assert tuple(env.panels) == ("valid_seen", "valid_unseen")
    assert env.version.startswith("1 official/")
    tasks = env.panel("valid_seen", 2).tasks
    assert {task.scope for task in tasks} == {f"pick_and_place_simple-{n}-None-Desk-308" for n in (1, 2)}
    assert all(task.instruction.startswith("put a ") and not task.instruction.endswith(".") for task in tasks)
    assert len(env.sample(5, key(0))) == 5
    with pytest.raises(CoevoError, match="has 2 games that can be solved, not 3"):
        env.panel("valid_seen", 3)
    assert AlfWorld().version == "1 made", "made games never bear the name of the official ones"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"pddl_problem": 3}, "it has no problem"),
        ({"pddl_problem": "(a {b}_bar_1)"}, "a character that no name has"),
        ({"grammar": "x"}, "no task in words"),
        ({"grammar": 3}, "TypeError"),
    ],
)
def test_a_file_that_is_no_game_is_one_line(tmp_path, changes, line):
    env = AlfWorld("official", path=str(official(tmp_path, 2, **changes)))
    with pytest.raises(CoevoError, match=line) as caught:
        env.panel("valid_seen", 1)
    assert "\n" not in str(caught.value)


def test_a_task_cannot_leave_the_folder_of_the_games_nor_get_another_file(tmp_path):
    folder = official(tmp_path / "data")
    env = AlfWorld("official", path=str(folder))
    (task,) = env.panel("valid_seen", 1).tasks
    (tmp_path / "game.tw-pddl").write_text("{}")
    simulator = AlfWorldSimulator(str(folder), False)
    for data, line in (
        ({"game": "../game.tw-pddl"}, "is not a game below"),
        ({"digest": "0" * 16}, "is another game than it was"),
    ):
        other = Task(task.env, task.kind, task.instruction, task.scope, task.split, {**task.data, **data})
        with pytest.raises(CoevoError, match=line):
            simulator.open(other, key(0))


@engine
@pytest.mark.full
def test_the_planner_solves_made_games_of_all_families():
    with closing(environment()) as env:
        tasks = (*env.sample(3, key("planner")), *env.panel("unseen-rooms", 6).tasks[3:])
        steps = {task.kind: played(env, task) for task in tasks}
    assert set(steps) == set(FAMILIES)
    assert all(step.success and step.reward == 1 for step in steps.values())


def hostile(draw):
    """Random commands: parts of real ones, characters of all planes, and a few very long ones."""
    rng = generator(draw)
    parts = (
        "go to",
        "take",
        "cabinet 1",
        "mug 1",
        "from",
        "open",
        "put",
        "in/on",
        "look",
        "\x00",
        "\x1b[2J",
        "{a}",
        "|",
        '"',
    )
    for index in range(STRINGS):
        picked = [parts[number] for number in rng.integers(len(parts), size=rng.integers(4))]
        text = " ".join((*picked, *map(chr, rng.integers([32, 256, 0xD800][index % 3], size=rng.integers(4)))))
        yield text * (LONG // max(1, len(text))) if index % 100 == 99 else text


@engine
@pytest.mark.full
def test_no_text_raises_out_of_a_step_and_a_crash_is_the_environments_failure():
    with closing(environment()) as env:
        (task,) = env.sample(1, key("hostile"))
        state, _ = env.start(task)
        for action in hostile(key("hostile")):
            (step,) = env.try_step([state], [action])
            assert isinstance(step, Step), f"{action[:60]!r}: {step}"
            state = env.start(task)[0] if step.done else step.state
        for worker in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if any("libdownward" in each.path for each in worker.memory_maps()):
                    worker.kill()
        (lost,) = env.try_step([state], ["look"])
        assert isinstance(lost, EpisodeFailure)
        assert lost.kind == "crash"
        assert env.start(task)


@engine
@pytest.mark.full
def test_the_same_task_and_actions_are_the_same_episode_in_another_process():
    traces = []
    for _ in range(2):
        with closing(environment()) as env:
            (task,) = env.sample(1, key("repeat"))
            (state, seen), lines = env.start(task), []
            for action in (
                "look",
                "go to drawer 1",
                "open drawer 1",
                "dance",
                "go to shelf 1",
                "inventory",
                "examine shelf 1",
            ):
                (step,) = env.step([state], [action])
                state = step.state
                lines.append((step.observation, step.feedback, step.valid))
            traces.append((seen, lines, state.trace))
    assert traces[0] == traces[1]


@engine
@pytest.mark.soak
def test_the_check_of_environments_is_clean():
    results = check_environment(environment(), tasks=2)
    assert [str(each) for each in results if not each.passed] == []


@engine
@pytest.mark.full
def test_official_files_are_played_with_the_package_s_grammar(tmp_path):
    with closing(environment(games="official", path=str(official(tmp_path, 2)), commands=True)) as env:
        (task,) = env.panel("valid_unseen", 1).tasks
        (_, seen) = env.start(task)
        assert "Possible: " in seen
        assert played(env, task).success


@engine
@pytest.mark.full
def test_what_fits_where_is_part_of_the_package_s_tables():
    code = (
        "import json; from coevo.envs.alfworld.pddl_engine import tables; c = tables('constants');"
        "print(json.dumps({'fits': {k: sorted(v) for k, v in c.VAL_RECEPTACLE_OBJECTS.items()},"
        "'able': {k: sorted(v) for k, v in c.VAL_ACTION_OBJECTS.items()}}))"
    )
    root = str(Path(__file__).parents[3])
    told = subprocess.run(
        [PYTHON, "-c", code], check=True, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": root}
    )
    known = json.loads(told.stdout)
    for piece in {each for pieces in FURNITURE.values() for each in pieces}:
        assert FITS[piece] <= {*known["fits"][piece]}, piece
    for name in ("cleanable", "heatable", "coolable", "sliceable"):
        assert ABLE[name] <= {*known["able"][name.title()]}, name
