"""Settings and parts that do nothing, or harm, are named before a start with what helps; healthy ones are not."""

import re
from dataclasses import replace

import pytest
from support.tools import ToolHouse

from coevo.configs.load.load import load_recipe
from coevo.envs.homerules import HomeRules
from coevo.records.task import Panel
from coevo.tasks.preflight.forecast import too_short
from coevo.tasks.preflight.notices import notices
from coevo.tasks.preflight.rehearse import rehearse

COEVO, GRPO, REACT, EXPERIENCE = "homerules-coevo-rl", "homerules-grpo", "homerules-react", "homerules-experience-only"
QWEN = "homerules-coevo-rl-qwen3-0.6b"
SETTING = re.compile(r"\b([a-z_]+(?:\.[a-z_]+)+)=(\{[^}]*\}|[^\s,;:]+)")
BRIEF = ("evaluation.tasks=8", "iterations=40")
WON, LOST = (True, 1.0), (False, 0.0)


class Leaking(HomeRules):
    """A household whose first panel is training tasks."""

    def panel(self, name, size):
        found = super().panel(name, size)
        tasks = self.sample(size, ("leak",)) if name == "seen-houses" else found.tasks
        return Panel(name, found.version, tuple(replace(each, split=name) for each in tasks))

    def sample(self, count, key):
        return super().sample(count, ("the same",))


class Costly(HomeRules):
    """A household in which each step costs, and success ends the cost."""

    reward_range = (-50.0, 0.0)


def said(recipe, overrides, env=HomeRules, outcomes=(WON, LOST)):
    config = load_recipe(recipe, [*BRIEF, *overrides] if recipe != REACT else overrides)
    return config, notices(config, env(), outcomes)


HARMFUL = {
    "greedy draws in groups": (GRPO, ["rollout.sampling.temperature=0.05"], {}, "are nearly equal"),
    "greedy draws without groups": (
        "homerules-ppo", ["rollout.sampling.temperature=0.1"], {}, "repeats its likeliest answers",
    ),
    "greedy draws for a contrast": (EXPERIENCE, ["rollout.sampling.temperature=0.02"], {}, "compares successes"),
    "a bank that opens too late": (COEVO, ["bank.retrieval.warmup=40"], {}, "shows no entry of the bank"),
    "a bank that opens much too late": (COEVO, ["bank.retrieval.warmup=400"], {}, "shows no entry of the bank"),
    "lessons without room": (COEVO, ["context.experience_tokens=4"], {}, "leaves out each of"),
    "a heading without room": (COEVO, ["context.experience_tokens=1"], {}, "leaves out each of"),
    "not even a word": (QWEN, ["context.experience_tokens=4"], {}, "leaves out any lesson"),
    "a key for every task": (COEVO, ["bank.key=task"], {}, "no two have the same bank.key=task"),
    "a panel of training tasks": (GRPO, [], {"env": Leaking}, "8 of the 8 tasks of panel seen-houses are training"),
    "success for nothing": (GRPO, [], {"outcomes": [(True, 0.0), LOST]}, "earn no more than a failure"),
    "success that costs": (GRPO, [], {"outcomes": [(True, -1.0)], "env": Costly}, None),
    "a reward out of range": (GRPO, [], {"outcomes": [(True, 5.0), LOST]}, "earns 5, which is not between 0 and 1"),
    "a loss out of range": (GRPO, [], {"outcomes": [WON, (False, -0.1)]}, "earns -0.1, which is not between 0 and 1"),
}  # fmt: skip
HEALTHY = {
    "the recipe": (COEVO, [], {}),
    "the policy alone": (GRPO, [], {}),
    "greedy draws that teach nothing": (REACT, ["rollout.sampling.temperature=0.01"], {}),
    "cool draws": (GRPO, ["rollout.sampling.temperature=0.4"], {}),
    "a bank that opens in time": (COEVO, ["bank.retrieval.warmup=39"], {}),
    "room for one lesson": (COEVO, ["context.experience_tokens=30"], {}),
    "a key for every kind": (COEVO, ["bank.key=kind"], {}),
    "a key for every task, searched together": (COEVO, ["bank.key=task", "bank.retrieval.scoped=false"], {}),
    "only failures": (GRPO, [], {"outcomes": [LOST, LOST]}),
    "only successes": (GRPO, [], {"outcomes": [WON, WON]}),
    "nothing played": (GRPO, [], {"outcomes": []}),
    "steps that cost": (GRPO, [], {"env": Costly, "outcomes": [(True, -5.0), (False, -50.0)]}),
    "a little for trying": (GRPO, [], {"outcomes": [WON, (False, 0.4)]}),
}


@pytest.mark.parametrize("name", [name for name, (*_, words) in HARMFUL.items() if words])
def test_what_does_nothing_or_harm_is_said_with_what_helps(name):
    recipe, overrides, more, words = HARMFUL[name]
    config, found = said(recipe, overrides, **more)
    (line,) = [each for each in found if words in each]
    assert line.isprintable()
    assert len(line) < 330
    remedy = [f"{key}={value}" for key, value in SETTING.findall(line.rpartition("set ")[2])]
    if not remedy:
        assert "sample" in line or "reward" in line  # the environment is the user's own
        return
    for setting in remedy if " or " in line.rpartition("set ")[2] else [" ".join(remedy)]:
        _, after = said(recipe, [*overrides, *setting.split()], **more)
        assert not [each for each in after if words in each], setting
    assert config


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_well_is_not_said(name):
    recipe, overrides, more = HEALTHY[name]
    _, found = said(recipe, overrides, **more)
    harmless = ("without evidence", "no effect", "guide", "generation_config")
    assert [each for each in found if not any(words in each for words in harmless)] == []


def test_an_answer_without_room_for_a_call_or_thinking_is_said_with_room_that_suffices():
    """Each call with its arguments and marks has 24 estimated tokens or so; a short thought has 256."""
    config = load_recipe(QWEN, BRIEF)
    found = rehearse(config, ToolHouse())
    assert found.action in [f'{{"name": "{name}", "arguments": {{"place": ""}}}}' for name in ("go", "take")]
    assert 20 < found.answer < 40

    def shown(most, thinking):
        brief = load_recipe(QWEN, [*BRIEF, f"rollout.sampling.max_new_tokens={most}"])
        return list(too_short(brief, replace(found, thinking=thinking)))

    for thinking in ("off", "none", "unknown", "left to the model"):
        (line,) = shown(found.answer - 1, thinking)
        assert f"cuts off the action {found.action!r:.60}, an answer of {found.answer} tokens" in line
        assert shown(int(line.rpartition("=")[2]), thinking) == shown(found.answer, thinking) == []
    (short,), (tight,) = shown(found.answer - 1, "on"), shown(found.answer + 200, "on")
    assert "cuts off the action" in short
    assert "leaves 200 tokens for thinking" in tight
    assert "context.template={enable_thinking: false}" in tight
    for line in (short, tight):
        assert shown(int(re.search(r"set rollout.sampling.max_new_tokens=(\d+)", line)[1]), "on") == []
    assert config.rollout.sampling.max_new_tokens >= found.answer


def test_actions_in_words_are_measured_as_the_policy_writes_them():
    config = load_recipe(COEVO, BRIEF)
    found = rehearse(config, HomeRules())
    assert not list(too_short(config, found))
    assert found.outcomes
    assert {earned for success, earned in found.outcomes if success} <= {1.0}
    brief = load_recipe(COEVO, [*BRIEF, f"rollout.sampling.max_new_tokens={found.answer - 1}"])
    (line,) = too_short(brief, found)
    assert re.search(r"cuts off the action '(go|take|use|put) \w+', an answer of \d tokens", line)
