"""The rehearsal's actions: the prompt names what changes a state, and the environment accepts its guide."""

import json
import re
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest
from support.simulators import Sums

from coevo.envs.babyai.babyai import BabyAI
from coevo.envs.base import NO_GUIDE, Environment, Guide, Step
from coevo.envs.homerules.homerules import HomeRules
from coevo.records.draws import key
from coevo.records.task import Panel, Task
from coevo.tasks.preflight import actions
from coevo.tasks.preflight.actions import EPISODES, Rehearsed, rehearse_actions


class Lamp(Environment[bool]):
    """A lamp to switch, without an expert."""

    name, version, panels = "lamp", "1", {}

    def __init__(self, guide=NO_GUIDE):
        self.given = guide

    def sample(self, count, key):
        return [Task("lamp", "light", "make light", "", "train", {"n": n}) for n in range(count)]

    def panel(self, name, size):
        return Panel(name, "1", ())

    def start(self, task):
        return False, "dark"

    def step(self, states, actions):
        return [self._step(state, action) for state, action in zip(states, actions, strict=True)]

    def _step(self, state, action):
        valid = action in ("switch on", "switch off", "wait")
        after = state if action == "wait" or not valid else action == "switch on"
        return Step(after, "light" if after else "dark", "", 0.0, False, False, valid)

    def guide(self, task):
        return self.given


def problems(env, prompt=lambda task: "", turns=8):
    return [*rehearse_actions(env, prompt, turns, key(0, "test")).problems]


def text_of(env):
    return lambda task: env.guide(task).text


@pytest.mark.parametrize(
    ("kind", "options"),
    [(HomeRules, {}), (HomeRules, {"level": 2}), (BabyAI, {}), (BabyAI, {"kinds": ("open", "putnext")})],
)
def test_the_guides_of_our_environments_are_true(kind, options):
    env = kind(**options)
    assert problems(env, text_of(env), 30) == []


def test_a_verb_that_the_prompt_does_not_name_is_a_problem():
    env = HomeRules()
    lacking = problems(env, lambda task: env.guide(task).text.replace("take", "fetch"))
    assert lacking == ["the prompt does not name 'take', which changed a state: add it to the guide of homerules"]


def test_without_prompts_only_the_guide_is_compared():
    assert problems(HomeRules(), None) == []


def test_a_verb_of_the_guide_that_nothing_accepts_is_a_problem():
    home = HomeRules()
    home.guide = lambda task: replace(tasks_guide(home, task), verbs=("go", "take", "use", "put", "fly"))
    assert problems(home, None) == ["no step of homerules accepts 'fly', a verb of its guide: correct the guide"]


def tasks_guide(home, task):
    return HomeRules.guide(home, task)


def test_without_an_expert_words_of_guide_and_observation_are_tried():
    told = Guide("switch on: light.\nswitch off: no light.\nwait: nothing.", ("switch", "wait"))
    assert problems(Lamp(told), text_of(Lamp(told))) == []
    assert problems(Lamp(replace(told, text="on off wait")), lambda task: "on off wait") == [
        "the prompt does not name 'switch', which changed a state: add it to the guide of lamp"
    ]
    wrong = replace(told, verbs=("switch", "wait", "break"))
    assert problems(Lamp(wrong), text_of(Lamp(wrong))) == [
        "no step of lamp accepts 'break', a verb of its guide: correct the guide"
    ]


def tool(name, **properties):
    return {"name": name, "parameters": {"properties": properties, "required": [*properties]}}


class Called(Lamp):
    """The lamp by calls of tools, each of which takes its arguments as its schema describes them."""

    def _step(self, state, action):
        call = json.loads(action)
        valid = call in (
            {"name": "switch", "arguments": {"to": "on", "times": 0, "how": "fast"}},
            {"name": "wait", "arguments": {}},
        )
        return Step(state or valid, "light" if state else "dark", "", 0.0, False, False, valid)


SWITCH = tool("switch", to={"type": "string"}, times={"type": "integer"}, how={"enum": ["fast", "slow"]})


def test_tools_are_tried_as_calls_with_the_arguments_of_their_schema():
    env = Called(Guide("Turn it on.", (), (SWITCH, tool("wait"))))
    assert problems(env, None) == []
    wrong = Called(Guide("Turn it on.", (), (SWITCH, tool("wait"), tool("look"))))
    assert problems(wrong, None) == ["no step of lamp accepts 'look', a verb of its guide: correct the guide"]


def test_a_tool_by_another_name_of_its_schema_and_a_malformed_property_are_tried_too():
    """Schemas come from an environment and may be anything."""
    odd = {"name": "switch", "inputSchema": {"properties": {"to": True}, "required": ["to"]}}
    env = Called(Guide("on", (), (odd, {"name": "wait", "input_schema": {"properties": [], "required": []}})))
    env._step = lambda state, action: Lamp._step(env, state, " ".join(_said(json.loads(action))))
    assert rehearse_actions(env, None, 4, key(0)) == Rehearsed((), ())
    env.given = Guide("on", (), (odd | {"inputSchema": {"properties": {"to": {"enum": 5}}, "required": ["to"]}},))
    assert rehearse_actions(env, None, 4, key(0)) == Rehearsed((), ())


def _said(call):
    return [call["name"], *call["arguments"].values()]


@pytest.mark.parametrize("text", ["dim[LEVEL]", "dim the LAMP to LEVEL", "dim <level>", ""])
def test_a_verb_that_takes_more_than_a_word_is_not_known_until_an_action_is_given(text):
    env = Lamp(Guide(text, ("switch", "dim") if text else ("switch",), () if text else (SWITCH | {"name": "dim"},)))
    env._step = lambda state, action: Lamp._step(env, state, "switch on" if action == "dim[3]" else action)
    env.given = replace(env.given, text=f"{text} on")
    said = "whether lamp accepts 'dim' of its guide is not known: `coevo envs check --action` tries a given action"
    assert rehearse_actions(env, None, 4, key(0)) == Rehearsed((), (said,))
    given = ("dim[3]", "switch on")
    assert rehearse_actions(env, None, 4, key(0), given) == Rehearsed((), ())
    (problem,) = rehearse_actions(env, None, 4, key(0), ("dim it", "switch on")).problems
    assert problem == "no step of lamp accepts 'dim', a verb of its guide: correct the guide"


def test_states_that_do_not_repeat_are_stepped_once_each():
    env = Lamp(Guide("on", ("switch", "break")))
    env.repeats, stepped = False, []
    env.step = lambda states, actions: stepped.extend(actions) or Lamp.step(env, states, actions)
    found = rehearse_actions(env, None, 8, key(0))
    assert len(stepped) == EPISODES * 8
    assert found.problems == ()
    assert ["'break'" in each for each in found.unproven] == [True]


def test_a_verb_that_one_word_cannot_try_is_not_tried():
    env, stepped = Lamp(Guide("put THING on PLACE", ("put",))), []
    env.step = lambda states, actions: stepped.extend(actions) or Lamp.step(env, states, actions)
    (said,) = rehearse_actions(env, None, 4, key(0)).unproven
    assert said.startswith("whether lamp accepts 'put' of its guide is not known")
    assert len(stepped) == EPISODES * 4


class GuidedSums(Sums):
    """Sums that name their actions, one of which they do not know."""

    def guide(self, task):
        return Guide("add NUMBER. fly.", ("add", "fly"))


@pytest.mark.parametrize(("turns", "reached"), [(100, 2), (4, 20)], ids=["while it plays", "while it tries verbs"])
def test_a_slow_simulator_is_not_tried_without_end(monkeypatch, turns, reached):
    monkeypatch.setattr(actions, "monotonic", count().__next__)
    with closing(GuidedSums()) as env:
        found = rehearse_actions(env, None, turns, key(0))
    assert found.problems == ()
    *unknown, ended = found.unproven
    assert ["'add'" in unknown[0], "'fly'" in unknown[1]] == [True, True]
    assert ended == (
        f"the rehearsal of sums ended after 180 s, in episode {reached} of 20: what it did not try is not known"
    )


def test_an_environment_without_a_guide_is_played_too():
    assert problems(Lamp()) == []


@pytest.mark.parametrize("part", ["start", "step", "guide"])
def test_lost_episodes_are_left_out_and_named_if_there_are_no_others(monkeypatch, part):
    env, calls = HomeRules(), []

    def fails(*given):
        calls.append(given)
        if always or len(calls) == 1:
            raise KeyError("shelf")
        return getattr(HomeRules, part)(env, *given)

    monkeypatch.setattr(env, part, fails)
    always = False
    assert problems(env) == problems(HomeRules())
    always = True
    (said,) = problems(env)
    assert re.fullmatch(
        r"homerules lost every episode, first exception: KeyError: 'shelf' \(.*\): see `coevo .*`", said
    )
