"""The check of an environment finds each broken promise of the interface, and names a remedy."""

import random
import re
from dataclasses import replace

import pytest
from support.simulators import Clocks, FailingSums, Household, Sums

from coevo.configs.load.load import load_recipe
from coevo.envs.base import NO_GUIDE, Environment, Guide, Step
from coevo.envs.homerules import HomeRules
from coevo.records.answer_form import CallForm, LineForm, OwnForm
from coevo.records.task import Panel, Task
from coevo.tasks.checks.environment_check import check_environment
from coevo.tasks.run.assemble import check_repeats
from coevo.utilities.errors import ConfigError


class Growing(HomeRules):
    """A household whose states remember how often they were stepped."""

    def __init__(self):
        super().__init__()
        self.seen = {}

    def step(self, states, actions):
        steps = super().step(states, actions)
        for state in states:
            self.seen[id(state)] = self.seen.get(id(state), 0) + 1
        return [
            step if self.seen[id(state)] == 1 else HomeRules.step(self, [state], ["go safe"])[0]
            for state, step in zip(states, steps, strict=True)
        ]


class Leaky(HomeRules):
    """A household whose panel has training tasks."""

    def panel(self, name, size):
        return Panel(name, self.version, tuple(self.sample(256, ("check", 0))[:size]))


class Misguided(HomeRules):
    """A household whose guide has a verb too many, and lacks others."""

    def guide(self, task):
        return Guide("go PLACE, take OBJECT, use APPLIANCE, fly", ("go", "fly"))


class Few(HomeRules):
    """A household with twenty training tasks, which cannot be drawn more than once."""

    def sample(self, count, key):
        if count > 20:
            raise ValueError("Cannot take a larger sample than population")
        return super().sample(count, key)


class Repeated(HomeRules):
    """A household that draws each task twice."""

    def sample(self, count, key):
        return (2 * super().sample(count // 2 + 1, key))[:count]


class Reader(HomeRules):
    """A household whose expert reads the guide, as a policy does."""

    def advise(self, state, moment, key):
        if not moment.guide:
            raise ValueError("it was shown no guide")
        return super().advise(state, moment, key)


class Honest(Clocks):
    """Clocks that do not pretend to repeat."""

    repeats = False


class Coin(Environment):
    """A die of many faces that falls as chance has it, without an expert; an episode ends after some tries."""

    name, version, panels = "coin", "1", {}

    def __init__(self, guide=NO_GUIDE, tries=99, faces=tuple(f"face {n}" for n in range(1000))):
        self.given, self.tries, self.faces = guide, tries, faces

    def sample(self, count, key):
        return [Task("coin", "flip", "flip it", "", "train", {"n": n}) for n in range(count)]

    def panel(self, name, size):
        return Panel(name, "1", ())

    def start(self, task):
        return 0, "a coin"

    def step(self, states, actions):
        return [self._step(tried + 1, action) for tried, action in zip(states, actions, strict=True)]

    def _step(self, tried, action):
        valid = action == "flip dime"
        seen = random.choice(self.faces) if valid else "a coin"
        return Step(tried, seen, "", 0.0, tried == self.tries, False, valid)

    def guide(self, task):
        return self.given


FLIP = Guide("flip COIN: dime, cent, penny, florin, or nickel.", ("flip",))
UNKNOWN = "not known, since no step was valid: give valid actions (--action), or add demonstrations or an expert"


def failed(env, **how):
    """Names and texts of failed checks."""
    return {each.name: each.text for each in check_environment(env, tasks=2, **how) if not each.passed}


@pytest.mark.parametrize(
    "env", [HomeRules(), Reader(), Household(), Sums(target=9)], ids=["pure", "guided", "hosted", "stateful"]
)
def test_a_sound_environment_passes(env):
    results = check_environment(env, tasks=2, actions=("1", "2") if isinstance(env, Sums) else ())
    assert all(each.passed for each in results), results
    assert str(results[0]).startswith("ok    no failures: 2 episodes, ")
    assert results[-1].name == "speed"


def test_a_failure_is_named_with_its_task():
    found = failed(FailingSums(), actions=("raise",))
    assert found["no failures"].startswith("exception: RuntimeError: out of order (")


@pytest.mark.parametrize(
    ("part", "value", "name", "text"),
    [
        ("step", [None], "no failures", "invalid: NoneType None is no step (task "),
        ("start", (0, None), "no failures", "invalid: NoneType None is no text (task "),
        ("start", None, "no failures", "invalid: NoneType None is no pair of state and observation (task "),
        ("advise", KeyError("shelf"), "no failures", "exception: KeyError: 'shelf' ("),
        ("sample", KeyError("shelf"), "no failures", "exception: KeyError: 'shelf'"),
        ("panel", KeyError("shelf"), "panels", "exception: KeyError: 'shelf'"),
        ("guide", KeyError("shelf"), "guide", "exception: KeyError: 'shelf'"),
    ],
)
def test_what_an_environment_raises_or_returns_fails_a_check(monkeypatch, part, value, name, text):
    def answer(*_):
        if isinstance(value, Exception):
            raise value
        return value

    env = HomeRules()
    monkeypatch.setattr(env, part, answer)
    found = failed(env)
    assert found[name].startswith(text)
    assert "repeats" not in found


def test_a_guide_is_compared_with_steps_and_an_action_with_what_the_parser_reads():
    assert "ok    guide: 4 verbs, all accepted" in map(str, check_environment(HomeRules(), tasks=1))
    assert "the prompt does not name 'put'" in failed(Misguided())["guide"]
    assert failed(Sums(target=9), actions=("1", "`1`")) == {
        "answers": "the action '`1`' is not read as it is written: name another form (Guide.answer), or change the "
        "grammar of actions"
    }


class Formed(HomeRules):
    """A household that names the form of an answer."""

    form = LineForm(label="Move", examples=("go safe", "take mug"))

    def guide(self, task):
        return replace(super().guide(task), answer=self.form)


def test_the_form_of_answers_is_shown_and_its_examples_are_read():
    assert "ok    form: one line after Move:; 2 examples read" in map(str, check_environment(Formed(), tasks=1))
    said = [each.text for each in check_environment(HomeRules(), tasks=1) if each.name == "form"]
    assert said == ["not named: a line 'Action: ...' is asked for, and any form is read"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            LineForm(examples=("go\nsafe",)),
            r"the example 'go\\nsafe' is not read as it is written \(one line after Action:\)",
        ),
        (OwnForm(parser="nowhere:at_all", request="Act."), "nowhere cannot be imported"),
        (OwnForm(parser="json:__name__", request="Act."), "a str is no function: name one"),
        (CallForm(), "CallForm.* is no form without tools"),
    ],
)
def test_a_form_that_cannot_be_used_fails_its_check(monkeypatch, form, text):
    monkeypatch.setattr(Formed, "form", form)
    assert re.search(text, failed(Formed())["form"])


def test_what_does_not_repeat_is_told_from_what_says_so():
    found = failed(Clocks(), actions=("look",))
    assert "declare repeats = False" in found["repeats"]
    assert failed(Honest(), actions=("look",)) == {}


def test_verbs_of_the_guide_find_out_what_draws_from_anywhere():
    assert "declare repeats = False" in failed(Coin(FLIP))["repeats"]


@pytest.mark.parametrize("tries", [1, 99])
def test_valid_guesses_prove_what_repeats(tries):
    assert failed(Coin(FLIP, tries, ("heads",))) == {}


@pytest.mark.parametrize(("guide", "actions"), [(NO_GUIDE, ()), (replace(FLIP, text=""), ()), (FLIP, ("spin",))])
def test_what_no_valid_step_proves_is_not_ok(guide, actions):
    found = failed(Coin(guide), actions=actions)
    assert {name: found[name] for name in ("repeats", "pure")} == dict.fromkeys(("repeats", "pure"), UNKNOWN)


def test_an_environment_with_few_tasks_is_checked_with_those():
    assert "ok    sample: 16 different tasks" in map(str, check_environment(Few(), tasks=1))


def test_tasks_that_a_batch_refuses_are_named(monkeypatch):
    assert failed(Repeated())["sample"] == "of 256 tasks 127 are returned again: return different ones"
    env, drawn = HomeRules(), HomeRules().sample
    monkeypatch.setattr(env, "sample", lambda count, key: [replace(each, split="all") for each in drawn(count, key)])
    assert failed(env)["sample"] == "its tasks have split all: set split to train"


def test_rewards_beyond_their_range_are_found(monkeypatch):
    env = HomeRules()
    assert "rewards" not in failed(env)
    monkeypatch.setattr(env, "reward_range", (2.0, 3.0), raising=False)
    assert re.match(r"the sum of an episode is [01], which is not between 2 and 3: scale", failed(env)["rewards"])


@pytest.mark.parametrize("actions", [(), ("go safe",)])
def test_rewards_without_a_success_say_so(actions):
    (rewards,) = (each for each in check_environment(HomeRules(), 16, actions) if each.name == "rewards")
    assert rewards.passed
    assert (
        rewards.text
        == {
            (): "sums of an episode are 0 to 1",
            ("go safe",): "all sums of an episode are 0; no episode succeeded, so the reward of success is not checked",
        }[actions]
    )


def test_a_state_that_changes_and_a_leaking_panel_are_found():
    assert "return a new state" in failed(Growing())["pure"]
    assert set(failed(Leaky())) == {f"panel {name}" for name in HomeRules.panels}


class Tally(Coin):
    """A coin whose state is a list, which a step changes."""

    def start(self, task):
        return [], "a coin"

    def step(self, states, actions):
        for state in states:
            state.append("tried")
        tried = zip(states, actions, strict=True)
        return [replace(self._step(len(state), action), state=state) for state, action in tried]


@pytest.mark.parametrize(("coin", "wrong"), [(Coin, {"repeats"}), (Tally, {"repeats", "pure"})])
def test_chance_is_no_change_of_a_state(coin, wrong):
    assert set(failed(coin(FLIP), actions=("flip dime",))) == wrong


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ([], "bank.admission.type=replay pairs episodes, but sums does not repeat"),
        (["bank.admission={type: append}"], None),
        (["bank.admission={type: append}", "bank.retirement={}"], "bank.retirement pairs episodes, but sums"),
        (["bank.admission={type: append}", "bank.retirement={entries: 0, capacity: 9}"], None),
        (["bank=null"], None),
    ],
)
def test_what_needs_repetition_refuses_what_does_not_repeat(settings, refused):
    config = load_recipe("homerules-coevo-rl", settings)
    check_repeats(config, Sums())
    if refused is None:
        check_repeats(config, Honest())
        return
    with pytest.raises(ConfigError, match=refused):
        check_repeats(config, Honest())


def test_unfinished_episodes_need_repetition():
    config = load_recipe("homerules-context-lite", ["rollout.turns=2"])
    with pytest.raises(ConfigError, match="plays unfinished episodes again, but sums does not repeat"):
        check_repeats(config, Honest())
