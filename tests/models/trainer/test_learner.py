"""An update with DeepSpeed equals the textbook one in plain torch, whatever the ZeRO stage and micro-batches."""

import copy
import math
from dataclasses import replace

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from support.rows import TEMPERATURE, plain_logprobs

from coevo.configs.update.loss import LossConfig
from coevo.configs.update.update_config import DeepSpeedConfig, OptimizerConfig, UpdateConfig, WriterUpdateConfig
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.models.trainer import deepspeed_engine
from coevo.models.trainer.checkpoint import STATE, load_optimizer, save_optimizer
from coevo.models.trainer.checkpoint import whole as value_of
from coevo.models.trainer.learner import Learner
from coevo.models.trainer.packed_forward import PolicyForward
from coevo.models.trainer.reference_policy import substituted
from coevo.models.trainer.samples import write_answers
from coevo.models.trainer.update_batch import minibatches, read
from coevo.records.draws import extend, key
from coevo.records.writing import Drawn
from coevo.utilities.errors import CoevoError


def settings(stage=1, tokens=16384, **optimizer):
    return UpdateConfig(
        loss=LossConfig(kl_coefficient=0.05, clip_low=0.05, clip_high=0.05),
        optimizer=OptimizerConfig(**{"lr": 1e-2, "clip": 0.5} | optimizer),
        deepspeed=DeepSpeedConfig(zero_stage=stage, tokens=tokens),
    )


def learner(model, config, reference=None):
    reference = copy.deepcopy(reference or model)
    frozen = {
        name: value.detach()
        for name, value in deepspeed_engine.trainable(PolicyForward(reference, TEMPERATURE)).items()
    }
    module = PolicyForward(model, TEMPERATURE, entropy_gradient=config.loss.entropy_coefficient > 0)
    wrapped = deepspeed_engine.start(module, config.optimizer, config.deepspeed)
    if config.deepspeed.zero_stage == 3:
        other = deepspeed_engine.freeze(PolicyForward(reference, TEMPERATURE), config.deepspeed)
        return Learner(wrapped, other, config), wrapped
    return Learner(wrapped, substituted(wrapped.module, frozen), config), wrapped


def loss_of(model, batch, reference, rows):
    """Token-mean GRPO of these rows, written out once more with plain forwards."""
    logprobs, _ = plain_logprobs(model, [batch.prompts[r] for r in rows], [batch.completions[r] for r in rows])
    terms = []
    for row, policy in zip(rows, logprobs, strict=True):
        ratio = (policy - batch.behaviour[row, : len(policy)]).exp()
        advantages = batch.advantages[row, : len(policy)]
        gain = torch.minimum(ratio * advantages, ratio.clamp(0.95, 1.05) * advantages)
        gap = reference[row] - policy
        terms.append(-gain + 0.05 * (gap.exp() - gap - 1))
    return torch.cat(terms).mean()


@torch.no_grad()
def reference_of(model, batch):
    return plain_logprobs(model, batch.prompts, batch.completions)[0]


def textbook(model, batch, config, where):
    """An update with torch's AdamW, nothing shared."""
    adam, reference, losses, norms = config.optimizer, reference_of(model, batch), [], []
    optimizer = torch.optim.AdamW(model.parameters(), lr=adam.lr, betas=adam.betas, weight_decay=0.0)
    for epoch in range(adam.epochs):
        for rows in minibatches(batch, adam.minibatches, extend(where, "epoch", epoch)):
            loss = loss_of(model, batch, reference, rows)
            optimizer.zero_grad()
            loss.backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), adam.clip).item())
            optimizer.step()
            losses.append(loss.item())
    return sum(losses) / len(losses), sum(norms) / len(norms)


@pytest.mark.parametrize(("stage", "tokens"), [(0, 60), (1, 16384), (2, 60), (3, 60)])
def test_an_update_is_the_textbook_update(policy, batch, joined, stage, tokens):
    config = settings(stage, tokens, minibatches=2, epochs=2)
    expected, model = copy.deepcopy(policy.model), copy.deepcopy(policy.model)
    loss, norm = textbook(expected, batch, config, key(3))
    it, wrapped = learner(model, config)
    metrics = it.update(batch, key(3))
    assert metrics["loss"] == pytest.approx(loss, abs=1e-5)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert metrics["steps"] == 4
    assert (metrics["samples"], metrics["tokens"]) == (24, batch.tokens)
    assert metrics["mismatch_max"] < 1e-5
    assert 0 < metrics["mismatch_tokens"] < batch.tokens
    assert 0 < metrics["clip_share"] < 1
    worked = whole(wrapped)
    for name, wanted in expected.named_parameters():
        torch.testing.assert_close(worked[name], wanted, atol=2e-4, rtol=0)


@pytest.mark.parametrize(("aggregation", "stage", "most"), [("token-mean", 1, 128), ("traj-mean-step-mean", 3, 5)])
def test_the_distance_to_the_policy_before_the_update_is_fresh(
    policy, batch, joined, monkeypatch, aggregation, stage, most
):
    """KL(before || after) over the batch's own tokens, not the distance to the reference, which is another policy."""
    monkeypatch.setattr("coevo.models.trainer.learner.MOVED", most)
    loss = LossConfig(aggregation=aggregation)
    config = settings(stage, epochs=2).model_copy(update={"loss": loss})
    model, other = copy.deepcopy(policy.model), copy.deepcopy(policy.model)
    with torch.no_grad():
        other.get_input_embeddings().weight.mul_(1.5)
    chosen = range(0, 24, -(-24 // most))
    before = reference_of(model, batch)
    it, wrapped = learner(model, config, other)
    metrics = it.update(batch, key(3))
    updated, worked = copy.deepcopy(policy.model), whole(wrapped)
    updated.load_state_dict(worked, strict=False)
    after = reference_of(updated, batch)
    gap = torch.cat([after[row] - before[row] for row in chosen]).double()
    assert metrics["kl_previous"] == pytest.approx(float((gap.exp() - gap - 1).mean()), rel=1e-2)
    assert metrics["kl_previous"] > 1e-5
    assert abs(metrics["kl_previous"] / metrics["kl"] - 1) > 0.2


@pytest.mark.parametrize(
    "loss",
    [{}, {"importance_cap": 2.0}, {"aggregation": "traj-mean-step-mean"}, {"kl_coefficient": 0.0}],
    ids=["", "cap", "action", "kl"],
)
def test_a_batch_without_samples_changes_nothing(policy, empty_path, joined, loss):
    model = copy.deepcopy(policy.model)
    config = settings().model_copy(update={"loss": LossConfig(**loss)})
    metrics = learner(model, config)[0].update(read(empty_path), key(0))
    assert metrics["steps"] == metrics["samples"] == metrics["loss"] == metrics["kl_previous"] == 0
    assert all(torch.isfinite(torch.tensor(value)) for value in metrics.values())
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), policy.model.parameters(), strict=True))


def test_a_loss_that_is_not_finite_stops_the_update(policy, batch, joined):
    spoilt = replace(batch, behaviour=batch.behaviour * float("nan"))
    with pytest.raises(CoevoError, match=r"loss is nan: lower update\.optimizer\.lr=0\.01"):
        learner(copy.deepcopy(policy.model), settings())[0].update(spoilt, key(0))


def test_a_gradient_that_is_not_finite_stops_the_update(policy, batch, joined):
    def spoil(module, given, received):
        return tuple(None if each is None else torch.full_like(each, float("inf")) for each in given)

    model = copy.deepcopy(policy.model)
    model.model.layers[0].register_full_backward_hook(spoil)
    with pytest.raises(CoevoError, match=r"update's gradient is (inf|nan): lower update\.optimizer\.lr=0\.01"):
        learner(model, settings())[0].update(batch, key(0))


@pytest.mark.parametrize("stage", [0, 3])
def test_a_step_that_changes_no_weight_stops_the_update(policy, batch, joined, stage):
    wanted = r"changed no float32 weight, although its gradient has norm .*: raise update\.optimizer\.lr=1e-30"
    model = copy.deepcopy(policy.model)
    for parameter in model.parameters():
        parameter.data[parameter == 0] = 0.01  # any step moves a zero
    with pytest.raises(CoevoError, match=wanted):
        learner(model, settings(stage, lr=1e-30))[0].update(batch, key(0))


def test_mismatch_is_that_before_the_first_step(policy, batch, joined):
    shifted = replace(batch, behaviour=torch.where(batch.mask, batch.behaviour - 0.25, 0.0))
    metrics = learner(copy.deepcopy(policy.model), settings(lr=0.5, epochs=2))[0].update(shifted, key(0))
    assert metrics["mismatch_mean"] == pytest.approx(0.25, abs=1e-5)
    assert metrics["mismatch_tokens"] == batch.tokens


def whole(wrapped):
    return {name: value_of(value).clone() for name, value in wrapped.module.model.named_parameters()}


def state(wrapped, directory):
    save_optimizer(wrapped, directory)
    return (directory / STATE).read_bytes()


def resumed(start, weights, directory, batch, stage):
    """Weights and optimizer after an update at this stage from what is kept in a directory."""
    model = copy.deepcopy(start)
    model.load_state_dict(weights, strict=False)
    it, wrapped = learner(model, settings(stage, minibatches=2), start)
    load_optimizer(wrapped, directory)
    it.update(batch, key(1))
    return whole(wrapped), state(wrapped, directory / f"stage-{stage}")


@pytest.mark.parametrize(
    ("stage", "other", "half"),
    [(0, 2, False), (1, 3, False), (2, None, False), (3, 0, False), (1, None, True), (3, None, True)],
)
def test_a_restored_optimizer_continues_exactly_and_at_another_stage_too(
    policy, batch, joined, tmp_path, stage, other, half
):
    start = copy.deepcopy(policy.model).bfloat16() if half else policy.model
    it, wrapped = learner(copy.deepcopy(start), settings(stage, minibatches=2), start)
    it.update(batch, key(0))
    middle, weights = state(wrapped, tmp_path), whole(wrapped)
    found, same_state = resumed(start, weights, tmp_path, batch, stage)
    near = None if other is None else resumed(start, weights, tmp_path, batch, other)[0]
    it.update(batch, key(1))
    straight = whole(wrapped)
    assert middle != state(wrapped, tmp_path / "straight") == same_state
    for name, value in straight.items():
        assert torch.equal(value, found[name])
        if near is not None:
            torch.testing.assert_close(near[name], value, atol=1e-4, rtol=0)


def test_another_policys_optimizer_is_refused(policy, batch, joined, tmp_path):
    save_file({"0.exp_avg": torch.zeros(3)}, tmp_path / STATE)
    with pytest.raises(CoevoError, match=r"state\.safetensors: not the state of an optimizer of this policy"):
        load_optimizer(learner(copy.deepcopy(policy.model), settings(1))[1], tmp_path)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_half_precision_is_optimised_in_float32(policy, batch, joined, tmp_path, stage):
    """A step too small for a half-precision weight is not lost."""
    it, wrapped = learner(copy.deepcopy(policy.model).bfloat16(), settings(stage, lr=1e-7))
    before = whole(wrapped)
    it.update(batch, key(0))
    save_optimizer(wrapped, tmp_path)
    kept, after = load_file(tmp_path / STATE), whole(wrapped)
    assert {value.dtype for value in kept.values()} == {torch.float32}
    assert {value.dtype for value in after.values()} == {torch.bfloat16}
    masters = {name: kept[f"master.model.{name}"] for name in after}
    assert all(torch.equal(masters[name].bfloat16(), after[name]) for name in after)
    unmoved = [name for name in before if name.endswith("norm.weight") and torch.equal(before[name], after[name])]
    assert unmoved, "bfloat16 at 1.0 shows no step of 1e-7"
    assert any(not torch.equal(masters[name], before[name].float()) for name in unmoved)


def test_half_precision_without_a_copy_in_float32_is_refused(policy, joined):
    module = PolicyForward(copy.deepcopy(policy.model).bfloat16(), TEMPERATURE)
    with pytest.raises(CoevoError, match=r"bfloat16, but update\.deepspeed\.zero_stage=0 .* set policy\.dtype=float32"):
        deepspeed_engine.start(module, OptimizerConfig(), DeepSpeedConfig(zero_stage=0))


@pytest.mark.parametrize("aggregation", ["token-mean", "traj-mean-step-mean"])
def test_a_trie_learns_what_rows_learn(policy, batch, joined, aggregation):
    found = []
    loss = LossConfig(kl_coefficient=0.05, aggregation=aggregation, entropy_coefficient=0.02)
    for packing in ("trie", "rows"):
        model = copy.deepcopy(policy.model)
        config = settings(tokens=60, minibatches=2).model_copy(update={"loss": loss, "packing": packing})
        it, wrapped = learner(model, config)
        found.append((it.update(batch, key(0)), whole(wrapped)))
    (one, tries), (other, rows) = found
    for name in ("loss", "grad_norm", "entropy", "kl"):
        assert one[name] == pytest.approx(other[name], rel=1e-3, abs=1e-5)
    for name, value in tries.items():
        torch.testing.assert_close(value, rows[name], atol=2e-4, rtol=0)


def corrected(cap):
    return settings().model_copy(update={"loss": LossConfig(kl_coefficient=0.0, importance_cap=cap)})


def test_the_engine_is_corrected_for_relative_to_the_policy_before_the_update(policy, batch, joined):
    shifted = replace(batch, behaviour=torch.where(batch.mask, batch.behaviour - 0.25, 0.0))
    metrics = learner(copy.deepcopy(policy.model), corrected(2.0))[0].update(shifted, key(0))
    assert metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-4)
    assert metrics["importance_weight"] == pytest.approx(math.exp(0.25), abs=1e-4)
    assert metrics["importance_capped_share"] == 0.0
    capped = learner(copy.deepcopy(policy.model), corrected(1.1))[0].update(shifted, key(0))
    assert capped["importance_weight"] == pytest.approx(1.1, abs=1e-4)
    assert capped["loss"] == pytest.approx(metrics["loss"] * 1.1 / math.exp(0.25), rel=1e-3)


@pytest.mark.parametrize("minibatches", [1, 2])
def test_a_whole_action_is_compared_with_the_trainer_before_the_update(policy, batch, joined, minibatches):
    """Whatever the engine's precision, no action is clipped at the first step; the distance of all tokens is known."""
    loss = LossConfig(kl_coefficient=0.0, aggregation="traj-mean-step-mean", clip_low=0.01, clip_high=0.01)
    config = settings(minibatches=minibatches, lr=1e-6).model_copy(update={"loss": loss})
    noise = 0.02 * torch.randn(batch.mask.shape, generator=torch.Generator().manual_seed(0))
    exact, near = (replace(batch, behaviour=batch.behaviour + far * batch.mask) for far in (0.0, noise))
    found = [learner(copy.deepcopy(policy.model), config)[0].update(each, key(0)) for each in (exact, near)]
    for metrics in found:
        assert metrics["ratio_mean"] == pytest.approx(1.0, abs=1e-3)
        assert metrics["clip_share"] == 0.0
    assert found[0]["loss"] == pytest.approx(found[1]["loss"])
    assert found[0]["mismatch_p99"] < 1e-4
    assert found[1]["mismatch_mean"] == pytest.approx(float(noise[batch.mask].abs().mean()), abs=1e-4)
    assert found[1]["mismatch_tokens"] == batch.tokens
    by_token = config.model_copy(update={"loss": loss.model_copy(update={"aggregation": "token-mean"})})
    assert learner(copy.deepcopy(policy.model), by_token)[0].update(near, key(0))["clip_share"] > 0


def test_an_entropy_bonus_raises_entropy(policy, batch, joined):
    calm = replace(batch, advantages=torch.zeros_like(batch.advantages))
    loss = LossConfig(kl_coefficient=0.0, entropy_coefficient=0.1)
    it, _ = learner(copy.deepcopy(policy.model), settings().model_copy(update={"loss": loss}))
    before, after = (it.update(calm, key(0))["entropy"] for _ in range(2))
    assert after > before


@pytest.mark.parametrize("stage", [1, 3])
def test_adapters_over_half_precision_learn_in_float32(policy, batch, joined, tmp_path, stage):
    model = get_peft_model(copy.deepcopy(policy.model).bfloat16(), LoraConfig(r=2, target_modules="all-linear"))
    before = {name: value.clone() for name, value in model.named_parameters()}
    it, wrapped = learner(model, settings(stage))
    it.update(batch, key(0))
    after = whole(wrapped)
    for name, value in before.items():
        assert after[name].dtype == (torch.float32 if "lora_" in name else torch.bfloat16)
        assert torch.equal(after[name], value) == ("lora_B" not in name), name
    save(Policy(wrapped.module.model, policy.tokenizer), tmp_path, value_of)
    kept = load_file(tmp_path / "adapter_model.safetensors")
    assert {value.dtype for value in kept.values()} == {torch.float32}
    assert len(kept) == sum("lora_" in name for name in before)


@pytest.mark.parametrize(("stage", "tokens"), [(1, 16384), (3, 60)])
def test_answers_add_their_loss_to_that_of_the_turns(policy, batch, joined, tmp_path, stage, tokens):
    """One step with both terms, written out once more with plain forwards (RetroAgent Eq. 4)."""
    config = settings(stage, tokens).model_copy(update={"writer": WriterUpdateConfig(weight=0.5)})
    drawn = [Drawn(batch.prompts[row], batch.completions[row]) for row in (0, 5, 7)]
    gains = [0.75, -0.25, -0.5]
    write_answers(tmp_path / "answers.parquet", drawn, spread(drawn, gains))
    answers = read(tmp_path / "answers.parquet")
    expected, model = copy.deepcopy(policy.model), copy.deepcopy(policy.model)
    logprobs, _ = plain_logprobs(expected, [d.prompt_ids for d in drawn], [d.token_ids for d in drawn])
    told = -sum(gain * row.sum() for gain, row in zip(gains, logprobs, strict=True)) / 3
    (0.5 * told).backward()
    loss_of(expected, batch, reference_of(expected, batch), range(len(batch))).backward()
    norm = torch.nn.utils.clip_grad_norm_(expected.parameters(), 1e9).item()
    metrics = learner(model, config)[0].update(batch, key(3), answers)
    assert metrics["writer_loss"] == pytest.approx(told.item(), abs=1e-5)
    assert metrics["grad_norm"] == pytest.approx(norm, rel=1e-3)
    assert (metrics["writer_answers"], metrics["writer_tokens"]) == (3, answers.tokens)
    alone = learner(copy.deepcopy(policy.model), settings(stage, tokens))[0].update(batch, key(3))
    assert metrics["loss"] == pytest.approx(alone["loss"], abs=1e-6)
    assert not [name for name in alone if name.startswith("writer")]


def test_answers_train_the_policy_where_no_turn_does(policy, empty_path, batch, joined, tmp_path):
    drawn = [Drawn(batch.prompts[0], batch.completions[0])]
    write_answers(tmp_path / "answers.parquet", drawn, spread(drawn, [1.0]))
    answers, model = read(tmp_path / "answers.parquet"), copy.deepcopy(policy.model)
    it, _ = learner(model, settings(lr=1e-3).model_copy(update={"writer": WriterUpdateConfig()}))
    losses = [it.update(read(empty_path), key(n), answers)["writer_loss"] for n in range(4)]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0]


def test_each_step_has_its_part_of_the_answers(policy, batch, joined, tmp_path):
    drawn = [Drawn(batch.prompts[row], batch.completions[row]) for row in range(3)]
    write_answers(tmp_path / "answers.parquet", drawn, spread(drawn, [1.0, -1.0, 0.5]))
    config = settings(minibatches=2, epochs=2).model_copy(update={"writer": WriterUpdateConfig()})
    it = learner(copy.deepcopy(policy.model), config)[0]
    metrics = it.update(batch, key(0), read(tmp_path / "answers.parquet"))
    assert (metrics["steps"], metrics["writer_answers"]) == (4, 3)


def test_a_clip_bounds_the_writer_by_the_policy_before_the_update(policy, empty_path, batch, joined, tmp_path):
    """Steps beyond the first move an answer no further than its clip, in each update anew."""
    drawn = [Drawn(batch.prompts[0], batch.completions[0])]
    write_answers(tmp_path / "answers.parquet", drawn, spread(drawn, [-1.0]))
    answers = read(tmp_path / "answers.parquet")

    def moved(**settings_of_writer):
        model = copy.deepcopy(policy.model)
        before, _ = plain_logprobs(model, [drawn[0].prompt_ids], [drawn[0].token_ids])
        config = settings(lr=1e-2, epochs=6).model_copy(update={"writer": WriterUpdateConfig(**settings_of_writer)})
        metrics = learner(model, config)[0].update(read(empty_path), key(0), answers)
        after, _ = plain_logprobs(model, [drawn[0].prompt_ids], [drawn[0].token_ids])
        return (after[0] - before[0]).mean().item(), metrics

    (free, reported), (bounded, share), (near, _) = moved(), moved(clip=0.2), moved(clip=0.2, kl_coefficient=10.0)
    assert free < bounded < near < 0
    assert share["writer_clip_share"] > 0 < share["writer_kl"]
    assert not {"writer_clip_share", "writer_kl"} & reported.keys()


def spread(answers, gains):
    """The same advantage for every token of an answer."""
    return [[gain] * len(each.token_ids) for each, gain in zip(answers, gains, strict=True)]
