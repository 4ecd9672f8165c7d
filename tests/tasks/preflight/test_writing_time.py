"""Seconds of a writer's answers, worked out by hand, and a notice where they cannot be known."""

from dataclasses import replace

import pytest
from support.policies import qwen

from coevo.configs.load.load import load_recipe
from coevo.models.capacity.devices import Device, Machine
from coevo.models.capacity.model_shape import shape_of
from coevo.models.policy.policy import save
from coevo.tasks.preflight.duration import durations
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.writing_time import QuestionEstimate, asking, untimed, writing

RECIPE = "textworld-coevo-rl-qwen3-0.6b"
EDITS, REFERENCES = "bank.admission={type: edits}", "bank.references=4"
MACHINE = Machine((), Device("cpu", 2**33, 1e11, 2e10))
LENGTHS = Lengths(shortest=500, longest=900, answer=100, last=900)
ENDPOINT = "model: {type: endpoint, url: 'http://localhost:8000/v1', model: big, seconds: 60}"
PER_TOKEN = 2 * 10**6 / (0.3 * 1e11)
"""Seconds of a token of a policy of a million weights: 2 flops a parameter, at 0.3 of the rate."""


def config(writer, *more):
    sizes = ["rollout.tasks=4", "rollout.group_size=2", "bank.every=5", "rollout.engine.threads=1"]
    return load_recipe(RECIPE, [f"bank.writer={{{writer}}}", *sizes, *more])


def shape(policy):
    return replace(shape_of(policy, 0), parameters=10**6, bytes=4)


def seconds(found):
    return writing(found, MACHINE, shape(found.policy), LENGTHS)


@pytest.mark.parametrize(
    ("writer", "asked"),
    [
        ("type: quote-contrast", None),
        ("type: model-contrast, candidates: 16", QuestionEstimate(16, 2)),
        ("type: model-contrast, candidates: 64", QuestionEstimate(20, 2)),
        ("type: model-editor, trajectories: 3, successes: 1", QuestionEstimate(20, 4)),
        ("type: model-editor", QuestionEstimate(20, 2 + 4)),
        ("type: model-reflection", QuestionEstimate(40, 2)),
        ("type: model-reflection, induction: single", QuestionEstimate(40, 1)),
        ("type: model-extremes", QuestionEstimate(2, 5)),
        ("type: model-extremes, warnings: 0", QuestionEstimate(1, 5)),
        ("type: model-skills, failures: 3", QuestionEstimate(6, 4)),
    ],
)
def test_a_firing_asks_at_most_so_much(writer, asked):
    assert asking(config(writer, *([EDITS] if "editor" in writer else []), REFERENCES)) == asked


def test_nobody_is_asked_without_a_bank():
    found = load_recipe(RECIPE, ["bank=null"])
    assert (asking(found), list(untimed(found)), seconds(found)) == (None, [], 0.0)


def test_the_policy_answers_all_questions_at_once():
    # A prompt of 400 tokens and two attempts of 900 + 100, answers of 50: 16 rows, every fifth iteration.
    found = config("type: model-contrast, candidates: 16, model: {type: policy, max_new_tokens: 50}")
    assert seconds(found) == pytest.approx(16 * (2400 + 50) * PER_TOKEN / 5)
    assert durations(found, MACHINE, shape(found.policy), LENGTHS, 4.0)["writing"] == seconds(found)
    short = config(
        "type: model-contrast, candidates: 16, question_tokens: 900, model: {type: policy, max_new_tokens: 50}"
    )
    assert seconds(short) == pytest.approx(16 * (900 + 50) * PER_TOKEN / 5)


def test_questions_are_answered_in_batches_and_none_begins_after_the_limit():
    many = "type: model-reflection, induction: single, model: {type: policy, max_new_tokens: 50, seconds: %s}"
    whole = 40 * (400 + 1000 + 50) * PER_TOKEN  # batches of 13 and a third on average: 16, 16 and 8
    assert seconds(config(many % 60)) == pytest.approx(whole / 5)
    assert seconds(config(many % 1)) == pytest.approx((1 + whole / 3) / 5)
    short = config("type: model-contrast, candidates: 16, model: {type: policy, max_new_tokens: 50, seconds: 1}")
    assert seconds(short) == pytest.approx(16 * (2400 + 50) * PER_TOKEN / 5)


def test_a_policy_that_rounds_answers_one_by_one_on_transformers():
    found = config("type: model-contrast, candidates: 16, model: {type: policy, max_new_tokens: 50}")
    half = replace(shape(found.policy), bytes=2)
    read = 2 * 10**6 / (0.6 * 2e10)
    alone = 2400 * PER_TOKEN + 50 * max(PER_TOKEN, read)
    assert writing(found, MACHINE, half, LENGTHS) == pytest.approx(16 * alone / 5)


def test_questions_about_held_out_panels_count():
    sizes = ["evaluation.tasks=12", "evaluation.reflections=20"]
    found = config("type: model-reflection, induction: single, model: {type: policy, max_new_tokens: 50}", *sizes)
    each = (400 + 1000 + 50) * PER_TOKEN
    assert writing(found, MACHINE, shape(found.policy), LENGTHS, 0.5) == pytest.approx(40 * each / 5 + 0.5 * 12 * each)
    again = ["evaluation.tasks=12", "evaluation.discovery=3", "bank.admission={type: append}"]
    found = config("type: model-contrast, candidates: 16, model: {type: policy, max_new_tokens: 50}", *again)
    firing = 16 * (2400 + 50) * PER_TOKEN
    alone = 1400 * PER_TOKEN + 50 * 4 * 10**6 / (0.6 * 2e10)  # the weights are read for each token
    assert writing(found, MACHINE, shape(found.policy), LENGTHS, 0.5) == pytest.approx(firing / 5 + 0.5 * 24 * alone)
    found = config(f"type: model-contrast, {ENDPOINT}", *again)
    assert "every 5 iterations and up to 24 for each evaluated panel, none begun after" in next(iter(untimed(found)))


def test_a_question_longer_than_the_model_attends_to_is_counted_up_to_that():
    found = config("type: model-contrast, candidates: 16, model: {type: policy, max_new_tokens: 50}")
    small = replace(shape(found.policy), positions=1000)
    assert writing(found, MACHINE, small, LENGTHS) == pytest.approx(16 * 1000 * PER_TOKEN / 5)


@pytest.mark.parametrize(("dtype", "at_once"), [("float32", True), ("bfloat16", False)])
def test_a_frozen_model_answers_in_its_own_engine(dtype, at_once, tmp_path):
    save(qwen(), tmp_path / "writer_model")
    writer_model = f"model: {{type: frozen, path: {tmp_path / 'writer_model'}, dtype: {dtype}, max_new_tokens: 50}}"
    found = config(f"type: model-extremes, {writer_model}")
    held = shape_of(found.policy.model_copy(update={"path": str(tmp_path / "writer_model"), "dtype": dtype}), 0)
    prompt = min(400 + 16_000 // 4, held.positions - 1)
    answer = min(50, held.positions - prompt)
    read, work = held.bytes * held.parameters / (0.6 * 2e10), 2 * held.parameters / (0.3 * 1e11)
    rows = 2 if at_once else 1
    turn = prompt * rows * work + answer * max(rows * work, read)
    assert seconds(found) == pytest.approx((1 if at_once else 2) * turn / 5)
    assert list(untimed(found)) == []


def test_answers_that_cannot_be_timed_are_named(tmp_path):
    found = config(f"type: model-editor, {ENDPOINT}", EDITS)
    assert seconds(found) == 0.0
    assert list(untimed(found)) == [
        "the answers of big at http://localhost:8000/v1 are not in the time: up to 20 questions every 5 iterations, "
        "none begun after bank.writer.model.seconds=60"
    ]
    missing = config(f"type: model-extremes, model: {{type: frozen, path: {tmp_path / 'none'}}}")
    assert seconds(missing) == 0.0
    assert list(untimed(missing)) == [
        f"{tmp_path / 'none'} is not on this machine, so its answers are not in the time: up to 2 questions every 5 "
        "iterations, none begun after bank.writer.model.seconds=600"
    ]
