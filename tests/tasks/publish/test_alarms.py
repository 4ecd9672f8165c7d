"""Alarms: too many unusable answers, and iterations without anything to learn from."""

import io
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console
from support.batches import episode, turn
from support.publications import publication

from coevo.configs.load.load import load_recipe
from coevo.configs.update.advantage_config import GaeConfig, GrpoConfig, ReinforceConfig
from coevo.flows.console.progress import Progress
from coevo.lineage.revision.manifest import Manifest
from coevo.memory.writers.model.answers import PromptedQuestion, answers, counts
from coevo.memory.writers.model.transcript import Shown
from coevo.models.advantages.trajectory import zero_variance
from coevo.records.answer_faults import REMEDIES, Fault
from coevo.records.metric_names import STREAK, UNTAKEN, UNWRITTEN
from coevo.records.writing import Question, Reply
from coevo.tasks.play.episode_metrics import unusable_metrics
from coevo.tasks.publish.alarms import alarms
from coevo.tasks.publish.revision_page import page
from coevo.tasks.steps.bank_steps import idle_firings
from coevo.tasks.steps.policy_steps import _streak, nothing_to_compare

CUT = replace(turn().completion, finished=False)


def manifest(config=(), **metrics):
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return Manifest.of({"revision": 1, "config": dict(config), "metrics": named}, {"metrics": {}})


def played(*turns):
    return [episode(turns=tuple(turns))]


def test_more_unusable_answers_than_the_limit_are_counted_with_their_reasons():
    thinking = turn(action="", valid=False, fault=Fault.CUT_OFF_THINKING)
    cut = turn(action="go x", valid=False, completion=CUT)
    metrics = unusable_metrics(played(thinking, thinking, turn(valid=False), cut, turn()), 0.5)
    assert metrics == {
        "agent/unusable/train": 0.8,
        "agent/faults/cut_off_while_thinking": 2,
        "agent/faults/refused_by_the_environment": 1,
        "agent/faults/cut_off": 1,
    }
    assert unusable_metrics(played(thinking, turn(completion=CUT), turn(), turn()), 0.5) == {
        "agent/faults/cut_off_while_thinking": 1
    }


def test_a_batch_without_faults_has_no_new_metric():
    assert unusable_metrics(played(turn(), turn(valid=False), turn(completion=CUT), turn()), 0.5) == {}
    assert unusable_metrics([], 0.5) == {}
    (lost,) = played(turn(action="", valid=False, fault=Fault.CUT_OFF_THINKING))
    assert unusable_metrics([*played(turn()), replace(lost, lost="exception: gone")], 0.0) == {}


def test_an_answer_that_is_cut_behind_an_action_which_was_used_is_not_unusable():
    """As those of a model that never ends its answers: the environment has understood each of their actions."""
    rambling = turn(completion=replace(CUT, text="go x and then I would"))
    assert unusable_metrics(played(rambling, turn(completion=CUT), rambling, turn()), 0.0) == {}
    refused = replace(rambling, valid=False)
    assert unusable_metrics(played(refused, rambling), 0.4) == {
        "agent/unusable/train": 0.5,
        "agent/faults/refused_by_the_environment": 1,
    }


def test_words_without_an_action_are_counted_above_the_limit():
    metrics = unusable_metrics(played(turn(action="", valid=False), turn(action="", valid=False, completion=CUT)), 0.5)
    assert metrics == {"agent/unusable/train": 1.0, "agent/faults/no_action": 1, "agent/faults/cut_off": 1}


@pytest.mark.parametrize("fault", Fault)
def test_an_alarm_names_the_most_frequent_reason_and_its_remedy_in_80_columns(fault):
    counts = {f"agent__faults__{fault.replace(' ', '_')}": 97.0, "agent__faults__cut_off": 98.0 * (fault == "cut off")}
    found = alarms(manifest(agent__unusable__train=1.0, **(counts | {"agent__faults__no_action": 2.0, **counts})))
    assert found == [f"100% of the answers are unusable, mostly: {fault}", f"remedy: {REMEDIES[fault]}"]
    out = io.StringIO()
    for line in found:
        Progress(Console(file=out, width=80), 1).warn(line)
    assert all(len(line) <= 80 for line in out.getvalue().splitlines())


FAR = {"policy__update__mismatch_mean": 0.06, "policy__update__mismatch_p99": 0.1}
TAILED = {"policy__update__mismatch_mean": 0.01, "policy__update__mismatch_p99": 0.6}
NEAR = {"policy__update__mismatch_mean": 0.05, "policy__update__mismatch_p99": 0.5}


@pytest.mark.parametrize("metrics", [FAR, TAILED])
def test_an_engine_that_is_far_from_the_trainer_alarms(metrics):
    first, second = alarms(manifest(**metrics))
    mean, tail = metrics.values()
    assert first == f"engine and trainer differ by {mean:.2g} per token, 1 % by over {tail:.2g}"
    assert second == "remedy: policy.dtype=float32, or update.loss.importance_cap=2.0"
    assert all(len(line) <= 71 for line in (first, second))
    capped = alarms(manifest({"update": {"loss": {"importance_cap": 2.0}}}, **metrics))
    assert capped == [first, "remedy: policy.dtype=float32"]
    assert alarms(manifest({"alarm": {"mismatch": 0.1}}, **metrics)) == []


@pytest.mark.parametrize("rollout", [{"ahead": 1}, {"sampling": {"top_p": 0.9}}, {"sampling": {"top_k": 5}}])
def test_an_engine_that_is_meant_to_draw_otherwise_is_no_alarm(rollout):
    assert alarms(manifest({"rollout": rollout}, **FAR)) == []
    assert alarms(manifest(**NEAR)) == []


def test_iterations_without_variance_alarm_from_the_limit_on():
    assert alarms(manifest(policy__advantage__iterations_without_variance=2.0)) == []
    first, second = alarms(manifest(policy__advantage__iterations_without_variance=3.0))
    assert first == "no group has had different rewards for 3 iterations: nothing is learned"
    assert second == "remedy: easier tasks, or a larger rollout.group_size"
    assert alarms(manifest({"alarm": {"flat": 5}}, policy__advantage__iterations_without_variance=4.0)) == []
    assert len(first) <= 71 and len(second) <= 71


def session(draft, head):
    made = SimpleNamespace(metrics=head)
    lineage = SimpleNamespace(history=SimpleNamespace(head=lambda: made))
    return SimpleNamespace(pending=SimpleNamespace(metrics=draft), stores=SimpleNamespace(lineage=lineage))


def test_the_streak_continues_across_revisions_and_ends_with_a_group_that_differs():
    within = {"policy/advantage/std": 0.0}
    assert _streak(session({}, {}), True) == {STREAK: 1.0}
    assert _streak(session({}, {STREAK: 2.0}), True) == {STREAK: 3.0}
    assert _streak(session(within | {STREAK: 4.0}, {STREAK: 2.0}), True) == {STREAK: 5.0}
    assert _streak(session(within, {STREAK: 2.0}), True) == {STREAK: 1.0}
    assert _streak(session({}, {STREAK: 2.0}), False) == {}
    assert _streak(session(within | {STREAK: 4.0}, {}), False) == {STREAK: 0.0}


@pytest.mark.parametrize(
    ("config", "groups", "nothing"),
    [
        (GrpoConfig(), "aabb", True),
        (GrpoConfig(), "aab", True),
        (GrpoConfig(), "abcd", False),
        (GaeConfig(type="gae"), "abcd", False),
        (ReinforceConfig(type="reinforce"), "aabb", False),
    ],
)
def test_equal_rewards_are_a_streak_only_where_groups_are_compared(config, groups, nothing):
    flat = zero_variance(np.ones(len(groups)), groups)
    assert flat.all()
    assert nothing_to_compare(flat, groups, config) is nothing
    assert not nothing_to_compare(~flat, groups, config)


def test_the_page_of_a_revision_shows_its_alarms():
    made = publication(2)
    made.manifest.state["iteration"] = 2
    made.manifest.state["metrics"] |= {"agent/unusable/train": 0.75, "agent/faults/no_tools_here": 9.0}
    text = page("run", replace(made, alarms=alarms(made.manifest)))
    assert "**Warning:** 75% of the answers are unusable, mostly: no tools here" in text
    assert "agent/faults/no\\_tools\\_here" in text


def test_the_default_configuration_does_not_mention_alarms():
    assert "alarm" not in load_recipe("homerules-coevo-rl").model_dump(mode="json")


def test_idle_firings_alarm_from_the_limit_on_unless_nearly_everything_is_solved():
    written, taken = {UNWRITTEN.replace("/", "__"): 5.0}, {UNTAKEN.replace("/", "__"): 5.0}
    assert alarms(manifest(**written))[0] == "the writer has proposed nothing in 5 firings"
    assert alarms(manifest(**taken))[0] == "the bank has taken nothing in 5 firings"
    assert alarms(manifest(**taken, **written)) == alarms(manifest(**written))
    assert all(len(line) <= 71 for line in (*alarms(manifest(**written)), *alarms(manifest(**taken))))
    assert alarms(manifest(**written))[1].startswith("remedy: rules quote feedback; ")
    asked = alarms(manifest({"bank": {"writer": {"type": "model-contrast"}}}, **written))[1]
    assert asked == "remedy: bank/writer/unanswered and rejected, bank.writer.model"
    assert alarms(manifest({"alarm": {"idle": 6}}, **written)) == []
    assert alarms(manifest(agent__success__train=0.95, **written)) == []


def fired(draft, last):
    """A session whose last firing was in a revision with these metrics."""
    history = SimpleNamespace(manifest={3: SimpleNamespace(metrics=last)}.__getitem__)
    lineage = SimpleNamespace(history=history)
    return SimpleNamespace(pending=SimpleNamespace(metrics=draft), fired=3, stores=SimpleNamespace(lineage=lineage))


def test_idle_firings_continue_from_the_revision_of_the_last_firing():
    assert idle_firings(fired({}, {}), UNTAKEN, False) == {UNTAKEN: 1.0}
    assert idle_firings(fired({}, {UNTAKEN: 4.0}), UNTAKEN, False) == {UNTAKEN: 5.0}
    assert idle_firings(fired({"bank/size": 2.0}, {UNTAKEN: 4.0}), UNTAKEN, False) == {UNTAKEN: 1.0}
    assert idle_firings(fired({}, {UNTAKEN: 4.0}), UNTAKEN, True) == {}
    assert idle_firings(fired({UNTAKEN: 2.0}, {}), UNTAKEN, True) == {UNTAKEN: 0.0}


def test_a_firing_whose_candidates_are_on_trial_is_neither_idle_nor_used():
    assert idle_firings(fired({}, {}), UNTAKEN, None) == {}
    assert idle_firings(fired({}, {UNTAKEN: 4.0}), UNTAKEN, None) == {UNTAKEN: 4.0}


OVER = "bank__retrieval__count_histogram__from_0"
UNSHOWN_BANK = {"bank__retrieval__iterations_unshown": 3.0, OVER: 4.0}
TRAINING = {"iterations": 40, "rollout": {"tasks": 16}, "evaluation": {"panels": ["seen"], "every": 10}}
HIGH = {"agent__success__train": 0.9, "agent__success_stderr__train": 0.05}
LOW = {"agent__success__train": 0.3, "agent__success_stderr__train": 0.08}
NONE, ALL = ({"agent__success__train": level, "agent__success_stderr__train": 0.0} for level in (0.0, 1.0))
MOVED = {"policy__update__grad_norm": 12.3, "policy__update__kl_previous": 0.21, "policy__update__kl": 0.4}
HARDLY = {"policy__update__grad_norm": 0.3, "policy__update__kl_previous": 2e-5, "policy__update__kl": 0.4}
GOOD, WORSE, BAD = "1" * 150 + "0" * 42, "1" * 141 + "0" * 51, "1" * 90 + "0" * 102
LOWER = "remedy: a lower update.optimizer.lr, from `coevo branch RUN@REVISION`"


def revision(number, metrics, seen="", panel="p", **config):
    """A revision with metrics, and perhaps the outcomes of a panel."""
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    outcomes = {"panels": {"seen": panel} if seen else {}, "outcomes": {"seen": seen} if seen else {}}
    if seen:
        named["agent/success/seen"] = seen.count("1") / len(seen)
    state = {"revision": number, "config": TRAINING | config, "metrics": named, **outcomes}
    return Manifest.of(state, {"metrics": {}})


def bank(**retrieval):
    return {"bank": {"retrieval": {"scoped": True, "type": "tfidf"} | retrieval}}


def unshown(iterations=3, config=None, **more):
    """A revision after iterations whose prompts showed nothing of a bank."""
    metrics = UNSHOWN_BANK | {"bank__retrieval__iterations_unshown": float(iterations)} | more
    return revision(iterations, metrics, **(config or bank()))


HARMFUL = {
    "training falls": (
        revision(6, LOW), [revision(5, HIGH | MOVED)],
        [
            "success in training fell beyond noise: 0.90 to 0.30 since r5",
            "gradient norm 12, KL to the policy before that update 0.21", LOWER,
        ],
    ),
    "training falls, and the update is not why": (
        revision(6, LOW), [revision(5, HIGH | HARDLY)],
        ["remedy: another bank.admission.type; the policy hardly moved"],
    ),
    "training falls under a frozen policy": (
        revision(6, LOW), [revision(5, HIGH)], ["remedy: another bank.admission.type; the policy was not updated"],
    ),
    "all training is lost at once": (revision(6, NONE), [revision(5, ALL | MOVED)], [LOWER]),
    "a panel falls": (
        revision(20, MOVED, BAD), [revision(19, HIGH), revision(11, {}), revision(10, HARDLY, GOOD)],
        ["success in seen fell beyond noise: 0.78 to 0.47 since r10", LOWER],
    ),
    "a panel falls after one iteration": (
        revision(2, HARDLY, BAD), [revision(1, {}, GOOD)],
        ["gradient norm 0.3, KL to the policy before that update 2e-05"],
    ),
    "success for nothing": (
        revision(1, {"agent__unrewarded__train": 7.0}), [],
        [
            "success earns nothing: 7 successful episodes, none above a failure",
            "remedy: reward success in the environment's step (coevo envs check)",
        ],
    ),
    "no room in the prompt": (
        unshown(bank__retrieval__left_out=2.0), [],
        [
            "no prompt has shown the bank for 3 iterations: all exceed the budget",
            "remedy: a larger context.experience_tokens",
        ],
    ),
    "pools that no task shares": (
        unshown(**{OVER: 12.0}), [],
        [
            "no prompt has shown the bank for 3 iterations: none is retrieved",
            "remedy: bank.retrieval.scoped=false, or another bank.key",
        ],
    ),
    "a retrieval that finds nothing": (
        unshown(config=bank(scoped=False)), [], ["remedy: another bank.retrieval.type"],
    ),
    "clusters that match nothing": (
        unshown(9, bank(type="cluster")), [], ["remedy: a lower bank.retrieval.threshold or clusters.delta"],
    ),
    "a bank that never grows enough": (
        unshown(20, bank(min_entries=9), bank__retrieval__enabled=0.0), [],
        ["no prompt has shown the bank for 20 iterations: it is too small", "remedy: bank.retrieval.min_entries=0"],
    ),
    "greedy draws": (
        revision(
            3, {"policy__advantage__iterations_without_variance": 3.0},
            rollout={"tasks": 16, "sampling": {"temperature": 0.05}},
        ),
        [], ["remedy: rollout.sampling.temperature=1.0"],
    ),
}  # fmt: skip
HEALTHY = {
    "training rises": (revision(6, HIGH), [revision(5, LOW | MOVED)]),
    "training falls within noise": (
        revision(6, HIGH | {"agent__success__train": 0.75}), [revision(5, HIGH | MOVED)],
    ),
    "few tasks agree by chance": (
        revision(6, NONE, rollout={"tasks": 3}), [revision(5, ALL, rollout={"tasks": 3})],
    ),
    "one task": (revision(6, {"agent__success__train": 0.0}), [revision(5, {"agent__success__train": 1.0})]),
    "a panel falls within noise": (revision(20, MOVED, WORSE), [revision(10, {}, "0" + WORSE[1:-1] + "1")]),
    "a panel rises": (revision(20, MOVED, GOOD), [revision(10, {}, BAD)]),
    "another panel": (revision(20, MOVED, BAD, panel="q"), [revision(10, {}, GOOD)]),
    "the first revision": (revision(0, {}, BAD), []),
    "a bank that was unshown twice": (unshown(2, bank__retrieval__left_out=1.0), []),
    "one entry for few of many tasks": (unshown(**{OVER: 1.0}), []),
    "a bank that is to grow first": (unshown(bank__retrieval__enabled=0.0), []),
    "some entries left out": (revision(3, {"bank__retrieval__left_out": 3.0, OVER: 9.0}, **bank()), []),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMFUL)
def test_what_does_harm_or_nothing_alarms_with_what_helps(name):
    manifest, earlier, lines = HARMFUL[name]
    found = alarms(manifest, iter(earlier))
    assert [line for line in lines if line not in found] == [], found
    assert all(len(line) <= 71 for line in found)
    assert found[-1].startswith("remedy: ")
    assert sum(line.startswith("remedy: ") for line in found) == 1


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_well_does_not_alarm(name):
    manifest, earlier = HEALTHY[name]
    assert alarms(manifest, iter(earlier)) == []


def test_alarms_of_success_have_lines_of_71_characters():
    name = "a-panel-with-quite-a-long-name"
    first = revision(1009, {}, evaluation={"panels": [name]})
    old, new = (Manifest(first.state | {"panels": {name: "p"}, "outcomes": {name: seen}}, {}) for seen in (GOOD, BAD))
    assert len(alarms(new, [old])[0]) == 71


def test_a_remedy_names_whole_keys_of_a_run():
    """Remedies of the lines above, and of answers that are not used."""
    lines = [line for _, _, found in HARMFUL.values() for line in found if "remedy" in line] + list(REMEDIES.values())
    named = {key for line in lines for key in re.findall(r"\b(?:bank|context|clusters|rollout|update)\.[a-z_.]+", line)}
    parser = {"parser": "auto", "template": {}}  # left out of a recipe that has the usual ones
    tree = load_recipe("homerules-slea-rl").model_dump(mode="json")
    tree["context"] |= parser
    for key in named:
        place = tree
        for part in key.split("."):
            assert part in place, key
            place = place[part]
    assert len(named) > 8


FORMLESS = (
    "have not the form that it asks for", "another bank.writer.model, or a policy that is taught to write",
)  # fmt: skip
CUT_OFF = "end at the limit of tokens", "a larger bank.writer.model.max_new_tokens"


@pytest.mark.parametrize(
    ("schema", "text", "finished", "says"),
    [
        ('{"type": "object"}', "lorem ipsum", True, FORMLESS),
        ("", "lorem ipsum", True, FORMLESS),
        ('{"type": "object"}', '{"lessons": [{"lesson": "heat', False, CUT_OFF),
        ('{"type": "object"}', "", False, CUT_OFF),
        ("", "% 1 / 2", False, CUT_OFF),
    ],
)
def test_answers_that_nobody_can_read_alarm_at_once(schema, text, finished, says):
    """As the writer counts them: a model that writes no JSON, too little of it, or a policy not taught to write."""
    prompted = PromptedQuestion(
        Question("contrast", "", ("e1",), "", "x", schema), [Shown(episode(), "", frozenset({1}))]
    )
    found = answers(lambda questions: [Reply(text, finished, 1, 2) for _ in questions], [prompted] * 4)
    metrics = {f"bank__writer__{name}": count for name, count in counts(found).items()}
    first, second = alarms(manifest(**metrics))
    assert (first, second) == (f"4 of the writer's 4 answers {says[0]}", f"remedy: {says[1]}")
    assert len(first) <= 71 and len(second) <= 71
    assert alarms(manifest(**metrics | {"bank__writer__questions": 8.0})) == []
