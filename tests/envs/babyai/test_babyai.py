"""The environment as a whole: words, settings, cloning material, silence, and the extra that it needs."""

import subprocess
import sys

import pytest

from coevo.configs.env import BabyAIConfig
from coevo.envs.babyai import BabyAI
from coevo.envs.babyai.babyai_contents import ACTIONS, KINDS
from coevo.envs.registry import make
from coevo.records.draws import generator, key
from coevo.utilities.errors import CoevoError

EVERY = tuple(KINDS)


def wander(env, task, rng):
    """Steps of an agent that mostly does something useful, and sometimes anything at all."""
    state, _ = env.start(task)
    for _ in range(12):
        action = ACTIONS[rng.integers(len(ACTIONS))] if rng.random() < 0.7 else "dance"
        (step,) = env.step([state], [action])
        yield step
        state = step.state
        if step.done:
            return


def test_every_word_that_is_ever_said_is_in_the_vocabulary(play):
    env, rng = BabyAI(EVERY, 8), generator(key("words"))
    texts = []
    for shown in env.demonstrations(60, 0, key("words")):
        texts += [shown.moment.instruction, shown.moment.observation, shown.answer.thought, shown.answer.action]
        texts += [text for turn in shown.moment.history for text in turn]
    for task in (*env.sample(60, key("words")), *env.panel("held-out", 40).tasks):
        texts += [task.instruction]
        texts += [text for step in wander(env, task, rng) for text in (step.observation, step.feedback)]
    for task in BabyAI(("open",), 0).sample(4, key("opened")):
        texts += [step.observation for step in play(env, task, [], key(0))]
    assert {word for text in texts for word in text.split()} - {"."} == set(env.vocabulary)
    assert len(env.vocabulary) < 65


def test_demonstrations_are_whole_episodes_of_the_bot(play):
    env = BabyAI(("pickup",), 2)
    shown = env.demonstrations(6, 0, key("shown"))
    openings = [index for index, one in enumerate(shown) if not one.moment.history]
    assert len(openings) == 6
    for first, after in zip(openings, [*openings[1:], len(shown)], strict=True):
        episode = shown[first:after]
        assert [len(one.moment.history) for one in episode] == list(range(len(episode)))
        assert episode[-1].answer.action == "pick up"
        assert all(one.moment.lessons == () for one in episode)


def test_a_probe_has_no_lessons():
    probe = BabyAI().probe(8, key("probe"))
    assert len(probe.tasks) == len(probe.right) == 8
    assert set(probe.right) == {()}
    assert probe.wrong == ()


def test_nothing_is_printed_when_layouts_are_rejected(capfd, monkeypatch):
    from coevo.envs.babyai import level

    drawn, write = [], level.write
    monkeypatch.setattr(level, "write", lambda *arguments: drawn.append(0) or write(*arguments))
    BabyAI(EVERY, 10).sample(30, key("crowded"))
    assert len(drawn) > 60
    assert capfd.readouterr() == ("", "")


def test_importing_it_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import coevo.envs.babyai"], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_levels_that_cannot_be_played_are_one_line(monkeypatch):
    from coevo.envs.babyai import level

    monkeypatch.setattr(level, "ATTEMPTS", 0)
    with pytest.raises(CoevoError, match=r"env.distractors=8: no goto level.*fewer distractors") as caught:
        BabyAI().sample(1, key(0))
    assert "\n" not in str(caught.value)


@pytest.fixture
def no_minigrid(monkeypatch):
    """As where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "minigrid", None)
    for name in [name for name in sys.modules if name.startswith("coevo.envs.babyai")]:
        monkeypatch.delitem(sys.modules, name)


def test_without_the_extra_one_line_says_how_to_install_it(no_minigrid):
    with pytest.raises(CoevoError, match=r"minigrid is not installed.*pip install 'coevo\[babyai\]'") as caught:
        make(BabyAIConfig())
    assert "\n" not in str(caught.value)
