"""One episode on the screen."""

import io

import pytest

from coevo.configs.load.load import load_env
from coevo.envs.homerules import HomeRules
from coevo.envs.registry import make
from coevo.records.demonstration import Answer
from coevo.records.draws import key
from coevo.tasks.steps.evaluate import expert_success, play_expert

WORLD = '''
from coevo.envs.base import Environment, Guide, Step
from coevo.records.task import Panel, Task


class Door(Environment):
    """A door."""

    name, version, panels = "door", "1", ()

    def __init__(self, locked=False):
        self.locked = locked

    def sample(self, count, key):
        return [Task("door", "open", "open the door", "", "train", {})] * count

    def panel(self, name, size):
        return Panel(name, "1", ())

    def guide(self, task):
        return Guide("open or push", verbs=("open", "push"))

    def start(self, task):
        return 0, "a door"

    def step(self, states, actions):
        return [self._turn(state, action) for state, action in zip(states, actions)]

    def _turn(self, state, action):
        done = action == "open" and not self.locked
        return Step(state + 1, "[red]a door\\x1b[31m", "ok", float(done), done or state == 2, done, action == "open")
'''


@pytest.fixture
def door(tmp_path, monkeypatch):
    (tmp_path / "door_world.py").write_text(WORLD)
    monkeypatch.syspath_prepend(tmp_path)
    return "door_world:Door"


def test_the_expert_plays_to_an_end(coevo):
    result = coevo("play", "homerules", "--seed", "2")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0].startswith("task      house ")
    assert lines[1].startswith("observe   at hall")
    assert lines[-1].startswith(("solved in", "not solved in"))


def test_the_same_seed_plays_the_same_episode(coevo):
    for agent in ("expert", "random"):
        shown = {coevo("play", "homerules", "level=2", "--agent", agent, "--seed", "5").out for _ in range(2)}
        assert len(shown) == 1
    assert coevo("play", "homerules", "--seed", "1").out != coevo("play", "homerules", "--seed", "2").out


def test_a_random_agent_takes_actions_of_the_environment(coevo):
    lines = coevo("play", "homerules", "--agent", "random").out.splitlines()
    acted = [line.split()[1] for line in lines if line.startswith("act ")]
    assert acted
    assert set(acted) <= {"go", "take", "use", "put"}


def test_the_expert_reads_the_guide(coevo, monkeypatch):
    monkeypatch.setattr(HomeRules, "advise", lambda self, state, moment, key: Answer("", moment.guide.splitlines()[1]))
    assert "act       go PLACE: go to a closed place" in coevo("play", "homerules", "--turns", "1").out


@pytest.mark.parametrize("kind", ["goto", "open"])
def test_an_expert_that_has_watched_the_episode_solves_it(coevo, kind):
    result = coevo("play", "babyai", f"kinds=[{kind}]", "distractors=2")
    assert result.out.splitlines()[-1].startswith("solved in ")
    assert result.out == coevo("play", "babyai", f"kinds=[{kind}]", "distractors=2").out


def test_a_human_is_read_line_by_line(coevo, door, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("push\nopen\n"))
    result = coevo("play", door, "--agent", "human")
    assert "feedback  ok   (not understood)" in result.out
    assert result.out.splitlines()[-1] == "solved in 2 turns"


def test_text_of_the_environment_is_shown_as_it_is_but_for_control_characters(coevo, door, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("push\nopen\n"))
    assert "[red]a door [31m" in coevo("play", door, "--agent", "human").out


def test_settings_reach_the_environment(coevo, door, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("open\nopen\nopen\n"))
    result = coevo("play", door, "options.locked=true", "--agent", "human")
    assert result.out.splitlines()[-1] == "not solved in 3 turns"


def test_the_end_of_input_ends_the_play(coevo, door, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert coevo("play", door, "--agent", "human").code == 130


def test_an_environment_without_an_expert_says_how_to_play_it(coevo, door):
    result = coevo("play", door)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "--agent random or human" in result.err


def test_without_demonstrations_a_random_agent_guesses_with_the_verbs_of_the_guide(coevo, door):
    acted = {
        line.split()[1]
        for seed in range(8)
        for line in coevo("play", door, "--agent", "random", "--seed", seed).out.splitlines()
        if line.startswith("act ")
    }
    assert acted == {"open", "push"}


ENDLESS = '''
from coevo.envs.base import Environment, Step
from coevo.records.demonstration import Answer
from coevo.records.task import Panel, Task


class Endless(Environment):
    """A corridor without an end."""

    name, version, panels = "endless", "1", {}

    def sample(self, count, key):
        return [Task("endless", "walk", "walk on", "", "train", {})] * count

    def panel(self, name, size):
        return Panel(name, "1", ())

    def start(self, task):
        return 0, "a corridor"

    def step(self, states, actions):
        return [Step(state + 1, "a corridor", "ok", 0.0, False, False) for state in states]

    def advise(self, state, moment, key):
        return Answer("", "walk")
'''


@pytest.fixture
def endless(tmp_path, monkeypatch):
    (tmp_path / "endless_world.py").write_text(ENDLESS)
    monkeypatch.syspath_prepend(tmp_path)
    return "endless_world:Endless"


@pytest.mark.timeout(60)
def test_an_environment_without_a_limit_is_cut_and_that_is_said(coevo, endless):
    result = coevo("play", endless)
    assert (result.code, result.out.count("act  ")) == (0, 50)
    assert result.out.splitlines()[-1] == "not solved in 50 turns, the limit of --turns"
    assert coevo("play", endless, "--turns", "3").out.count("act  ") == 3


@pytest.mark.timeout(60)
def test_the_expert_of_an_environment_without_a_limit_comes_to_an_end(endless):
    env = make(load_env(endless, []))
    assert expert_success(env, env.sample(2, key(0)), key(0)) == 0.0
    assert len(play_expert(env, *env.sample(1, key(0)), (), key(0), max_turns=7)) == 7
