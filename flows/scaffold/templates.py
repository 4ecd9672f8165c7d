"""Texts of a part of each kind, of an environment and of a recipe, each with its test: what a user changes first."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartTemplate:
    """Texts of a part, or of an environment.

    Attributes:
        setting: section that names such a part.
        group: entry-point group of such parts.
        module: text of the module.
        test: text of its test.
    """

    setting: str
    group: str
    module: str
    test: str


_ADVANTAGE = '''"""An estimator for update.advantage."""

import numpy as np

import coevo


class $cls(coevo.AdvantagePart):
    """Return minus the mean of its group."""

    grouped = True

    class Config(coevo.Config):
        scale: float = 1.0
        """Factor of all advantages."""

    def advantages(self, trajectories):
        returns = np.array([each.total for each in trajectories])
        groups = np.array([each.group for each in trajectories])
        means = np.array([returns[groups == group].mean() for group in groups])
        values = self.config.scale * (returns - means)
        return coevo.of_episodes(trajectories, values, used=values != 0, centred=True)
'''
_ADVANTAGE_TEST = """import numpy as np

import coevo


def trajectory(value):
    return coevo.Trajectory(group="task", value=value, rewards=np.array([value]), lengths=(2,))


def test_values_worked_out_by_hand():
    part = coevo.open_part("update.advantage", "$module:$cls", scale=2.0)
    found = part.advantages([trajectory(1.0), trajectory(0.0)])
    assert found.episodes.tolist() == [1.0, -1.0]
    assert [each.tolist() for each in found.tokens] == [[1.0, 1.0], [-1.0, -1.0]]
"""
_REWARD = '''"""A reward for update.reward."""

import numpy as np

import coevo


class $cls(coevo.RewardPart):
    """The environment's rewards, less a price for each turn."""

    whole = False

    class Config(coevo.Config):
        price: float = 0.01
        """Price of a turn."""

    def reward(self, episodes, penalties, baselines):
        turns = [
            np.array([turn.reward - self.config.price for turn in episode.turns]) - penalty
            for episode, penalty in zip(episodes, penalties)
        ]
        shaping = np.array([mine.sum() - episode.reward for mine, episode in zip(turns, episodes)])
        return coevo.Rewards(shaping, turns)
'''
_EPISODE = """

def episode(reward):
    task = coevo.Task("rooms", "open", "open the amber locker", "amber", "train", {})
    turn = coevo.Turn("at locker", (1,), coevo.Completion((2,), (-0.5,), "use key", True), "use key", "opened with key",
                      reward, True)
    return coevo.Episode(f"1/rollout/{task.id}/0", task, 1, 0, (turn,), reward > 0, False)
"""
_REWARD_TEST = f"""import numpy as np
import pytest

import coevo
{_EPISODE}

def test_a_turn_costs_its_price():
    part = coevo.open_part("update.reward", "$module:$cls", price=0.25)
    found = part.reward([episode(1.0)], [np.zeros(1)], {{}})
    assert found.turns[0].tolist() == [0.75]
    assert found.shaping.tolist() == [pytest.approx(-0.25)]
"""
_RETRIEVAL = '''"""A retrieval for bank.retrieval."""

import numpy as np

import coevo


class $cls(coevo.RetrievalPart):
    """The number of words that a lesson shares with the query."""

    class Config(coevo.Config):
        least: int = 1
        """Fewest shared words of an entry that is shown."""

    def fit(self, library):
        words = [set(entry.strategy.lower().split()) for entry in library.entries]

        def score(query):
            asked = set(query.text.lower().split()) - query.without
            shared = np.array([len(words[row] & asked) for row in query.rows], dtype=float)
            return np.where(shared >= self.config.least, shared, coevo.NEVER)

        return score
'''
_ENTRY = """

def entry(text):
    name = coevo.entry_id("amber", text)
    return coevo.Entry(name, text, "", "use key", "amber", "amber", "train", ("1/rollout/task/0",), 1, 1)
"""
_RETRIEVAL_TEST = f"""import numpy as np

import coevo
{_ENTRY}

def test_shared_words_count():
    library = coevo.Library([entry("amber opens with key"), entry("blue opens with code")])
    score = coevo.open_part("bank.retrieval", "$module:$cls", least=2).fit(library)
    scores = score(coevo.BankQuery("open amber with", np.arange(2)))
    found = dict(zip((each.strategy for each in library.entries), scores))
    assert found == {{"amber opens with key": 2.0, "blue opens with code": coevo.NEVER}}
"""
_WRITER = '''"""A writer for bank.writer."""

import coevo


class $cls(coevo.WriterPart):
    """The last action and feedback of each success, as a lesson for tasks of its pool."""

    class Config(coevo.Config):
        most: int = 8
        """Most candidates of one firing."""

    def write(self, evidence):
        found = {}
        for episode in evidence.episodes:
            if episode.success and episode.turns:
                entry = self.lesson(episode, evidence.revision)
                found.setdefault(entry.id, entry)
        fresh = [entry for entry in found.values() if entry.id not in evidence.library.row_of]
        return coevo.Proposal(tuple(fresh[: self.config.most]))

    def lesson(self, episode, revision):
        turn, scope = episode.turns[-1], self.key(episode.task)
        text = f"{turn.action}: {turn.feedback}"
        return coevo.Entry(
            id=coevo.entry_id(scope, text),
            strategy=text,
            condition="",
            example=turn.action,
            keywords=episode.task.instruction,
            scope=scope,
            split=episode.task.split,
            sources=(episode.id,),
            created=revision,
            edited=revision,
        )
'''
_WRITER_TEST = f"""import coevo
{_EPISODE}

def test_a_success_is_a_lesson_and_a_failure_is_none():
    part = coevo.open_part("bank.writer", "$module:$cls", most=1)
    references = coevo.References(part.key, 0)
    proposal = part.write(coevo.Evidence([episode(0.0), episode(1.0)], coevo.Library(()), references, 1))
    (entry,) = proposal.entries
    assert (entry.strategy, entry.scope) == ("use key: opened with key", "amber")
    assert part.write(coevo.Evidence([episode(1.0)], coevo.Library([entry]), references, 2)).entries == ()
"""
_ADMISSION = '''"""An admission for bank.admission."""

import coevo


class $cls(coevo.AdmissionPart):
    """Candidates enter while there is room."""

    class Config(coevo.Config):
        room: int = 100
        """Most entries of the bank."""

    def decide(self, proposal, library, replay, revision):
        fresh = [entry for entry in proposal.entries if entry.id not in library.row_of]
        taken = tuple(fresh[: max(0, self.config.room - len(library))])
        return coevo.Decision(taken, metrics={"bank/admission/taken": float(len(taken))})
'''
_ADMISSION_TEST = f"""import coevo
{_ENTRY}

def test_nothing_enters_a_full_bank():
    part = coevo.open_part("bank.admission", "$module:$cls", room=1)
    first, second = entry("opens with key"), entry("opens with code")
    assert part.decide(coevo.Proposal((first, second)), coevo.Library(()), None, 2).entries == (first,)
    assert part.decide(coevo.Proposal((second,)), coevo.Library([first]), None, 2).entries == ()
"""
_SCHEDULE = '''"""A schedule."""

import coevo


class $cls(coevo.SchedulePart):
    """Policy and bank change in turn, so many iterations each."""

    class Config(coevo.Config):
        stretch: int = 1
        """Iterations of a turn."""

    def phase(self, iteration, entries):
        learns = iteration // self.config.stretch % 2 == 0
        return coevo.Phase(learns=learns, evolves=not learns, since=iteration - iteration % self.config.stretch)
'''
_SCHEDULE_TEST = """import coevo


def test_they_take_turns():
    part = coevo.open_part("schedule", "$module:$cls", stretch=2)
    assert [part.phase(iteration, 0).learns for iteration in range(5)] == [True, True, False, False, True]
"""
PARTS = {
    "advantage": PartTemplate("update.advantage", "coevo.advantages", _ADVANTAGE, _ADVANTAGE_TEST),
    "reward": PartTemplate("update.reward", "coevo.rewards", _REWARD, _REWARD_TEST),
    "retrieval": PartTemplate("bank.retrieval", "coevo.retrieval", _RETRIEVAL, _RETRIEVAL_TEST),
    "writer": PartTemplate("bank.writer", "coevo.writers", _WRITER, _WRITER_TEST),
    "admission": PartTemplate("bank.admission", "coevo.admission", _ADMISSION, _ADMISSION_TEST),
    "schedule": PartTemplate("schedule", "coevo.schedules", _SCHEDULE, _SCHEDULE_TEST),
}
"""Templates by the last word of the section."""


_ENVIRONMENT = '''"""An environment: lockers that open with one of three tools each."""

import coevo

LOCKERS = ("amber", "blue", "coral", "green", "ivory", "olive", "pink", "white")
TOOLS = ("key", "crowbar", "code")
TRAINING, HELD_OUT = ("book", "coat", "lamp", "rope"), ("hat", "map")


def tasks_of(items, split):
    return [
        coevo.Task("$name", "open", f"open the {locker} locker for the {item}", locker, split, {})
        for item in items
        for locker in LOCKERS
    ]


class $cls(coevo.Environment):
    """Lockers that open with one of three tools each."""

    name, version, panels = "$name", "1", {"new-items": "items that training leaves out"}

    def sample(self, count, key):
        every = tasks_of(TRAINING, "train")
        return [every[index] for index in coevo.generator(key).permutation(len(every))[:count]]

    def panel(self, name, size):
        every = tasks_of(HELD_OUT, name)
        if name not in self.panels or size > len(every):
            raise coevo.CoevoError(f"$name has the panel new-items with up to {len(every)} tasks")
        return coevo.Panel(name, self.version, tuple(every[:size]))

    def start(self, task):
        return task, "at locker"

    def step(self, states, actions):
        return [self.advance(task, action) for task, action in zip(states, actions, strict=True)]

    def advance(self, task, action):
        tool = action.removeprefix("use ")
        if tool not in TOOLS:
            return coevo.Step(task, "at locker", "nothing happens", reward=0.0, done=True, success=False, valid=False)
        opens = tool == TOOLS[coevo.seed_of(coevo.key("$name", task.scope)) % len(TOOLS)]
        feedback = f"{task.scope} {'opens' if opens else 'stays shut'} with {tool}"
        return coevo.Step(task, "at locker", feedback, reward=float(opens), done=True, success=opens)

    def guide(self, task):
        return coevo.Guide(f"An action is 'use TOOL'. Tools: {', '.join(TOOLS)}.", verbs=("use",))
'''
_ENVIRONMENT_TEST = """import coevo
from $module import TOOLS, $cls


def test_it_keeps_the_promises_of_its_interface():
    results = coevo.check_environment($cls(), actions=[f"use {tool}" for tool in TOOLS])
    assert [str(each) for each in results if each.passed is False] == []


def test_one_tool_opens_each_locker():
    env = $cls()
    for task in env.sample(8, coevo.key("test")):
        assert sum(env.advance(task, f"use {tool}").success for tool in TOOLS) == 1
"""
ENVIRONMENT = PartTemplate("env", "coevo.envs", _ENVIRONMENT, _ENVIRONMENT_TEST)
RECIPE = """# A recipe of your own: CoEvo-RL on the embedded household, with some settings changed.
defaults: [recipes/homerules-coevo-rl]
iterations: 10
bank: {retrieval: {k: 3}}
"""
RECIPE_TEST = """import json
import subprocess
import sys
from pathlib import Path


def test_it_runs_on_this_machine():
    recipe = Path(__file__).with_name("$name.yaml")
    command = [sys.executable, "-P", "-m", "coevo.flows", "run", str(recipe), "--dry-run", "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["iterations"] == 10
"""
