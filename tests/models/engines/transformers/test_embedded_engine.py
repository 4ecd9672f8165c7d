import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from support.policies import llama, qwen, qwen2, requests
from transformers import MambaConfig, MambaForCausalLM

from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.transformers import decoding, prefill_rows
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.language_model import Policy
from coevo.models.policy.policy import save
from coevo.records.draws import key, uniforms
from coevo.utilities.errors import CoevoError

POLICIES = {"qwen3": lambda: qwen(init_std=0.3), "qwen2": qwen2, "llama": llama}
LENGTH = 12


@pytest.fixture(params=POLICIES, scope="module")
def policy(request):
    return POLICIES[request.param]()


def engine(policy, rows=64, **sampling):
    return TransformersEngine(
        policy, TransformersEngineConfig(rows=rows, threads=1), SamplingConfig(**{"max_new_tokens": LENGTH, **sampling})
    )


@torch.inference_mode()
def reference(policy, request, temperature=1.0, length=LENGTH):
    """Draws with the same uniforms from a full forward a token, without cache, batch or padding."""
    ids, logprobs = list(request.prompt_ids), []
    for uniform in uniforms([request.key], length)[0]:
        scaled = policy.model(input_ids=torch.tensor([ids])).logits[0, -1].double() / temperature
        token = int((scaled.softmax(-1).cumsum(-1) <= uniform).sum())
        ids.append(token)
        logprobs.append(float(scaled.log_softmax(-1)[token]))
        if token == policy.tokenizer.eos_token_id:
            break
    return tuple(ids[len(request.prompt_ids) :]), logprobs


@contextmanager
def widths(policy):
    """(rows, columns) of every forward that the model is asked for."""
    seen = []
    hook = policy.model.get_input_embeddings().register_forward_pre_hook(
        lambda _, args: seen.append(tuple(args[0].shape))
    )
    yield seen
    hook.remove()


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_equals_sampling_without_cache(policy, temperature):
    asked = requests()
    for request, made in zip(asked, engine(policy, temperature=temperature).generate(asked), strict=True):
        tokens, logprobs = reference(policy, request, temperature)
        assert made.token_ids == tokens
        assert made.logprobs == pytest.approx(logprobs, abs=1e-5)
        assert made.finished == (tokens[-1] == policy.tokenizer.eos_token_id)
        assert made.text == policy.tokenizer.decode(tokens, skip_special_tokens=True)


def test_top_1_equals_greedy_hf_generate(policy):
    asked = requests()
    for request, made in zip(asked, engine(policy, top_k=1).generate(asked), strict=True):
        prompt = torch.tensor([request.prompt_ids])
        ids = policy.model.generate(
            input_ids=prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=LENGTH
        )
        assert made.token_ids == tuple(ids[0, prompt.shape[1] :].tolist())


def test_some_answers_end_and_some_do_not_and_logprobs_are_probabilities(policy):
    made = engine(policy).generate(requests(members=16))
    assert {completion.finished for completion in made} == {True, False}
    assert len({len(completion.token_ids) for completion in made}) > 2
    for completion in made:
        assert len(completion.logprobs) == len(completion.token_ids)
        assert all(math.isfinite(logprob) and logprob <= 0 for logprob in completion.logprobs)


def test_order_rows_and_company_change_no_token(policy):
    asked = requests()
    together = {request.key: made for request, made in zip(asked, engine(policy).generate(asked), strict=True)}
    assert engine(policy).generate(requests()) == list(together.values()), "the same call twice is bit-equal"
    for variant, rows in ((asked[::-1], 64), (asked, 5), (asked[4:6], 64), (asked[7:8], 1)):
        for request, made in zip(variant, engine(policy, rows).generate(variant), strict=True):
            assert made.token_ids == together[request.key].token_ids
            assert made.logprobs == pytest.approx(together[request.key].logprobs, abs=1e-5)


def distinct(prompts):
    """Tokens of which the keys and values differ between prompts; the last token of each is its own."""
    return len({prompt[:end] for prompt in prompts for end in range(1, len(prompt))}) + len(set(prompts))


def test_later_turns_compute_what_no_prompt_had_before(policy):
    worker, asked = engine(policy), requests()
    first = worker.generate(asked)
    later = [
        replace(request, prompt_ids=(*request.prompt_ids[:5], 9, *range(6, 6 + row % 3)), key=key("later", row))
        for row, request in enumerate(asked)
    ]
    with widths(policy) as seen:
        made = worker.generate(later)
    before, now = ([request.prompt_ids for request in turn] for turn in (asked, later))
    inner = {prompt[:end] for prompt in now for end in range(1, len(prompt))}
    new = inner - {prompt[:end] for prompt in before for end in range(1, len(prompt))}
    assert seen[0] == (1, len(new) + len(set(now)))
    for request, completion in zip(later, made, strict=True):
        assert completion.token_ids == reference(policy, request)[0]
    for again, completion in zip(worker.generate(asked), first, strict=True):
        assert again.token_ids == completion.token_ids
        assert again.logprobs == pytest.approx(completion.logprobs, abs=1e-5)


@pytest.mark.parametrize("forward", [32, 10_000])
def test_more_tokens_than_a_row_or_a_forward_holds(policy, monkeypatch, forward):
    asked = requests()
    monkeypatch.setattr(prefill_rows, "ROW", 12)
    monkeypatch.setattr(prefill_rows, "FORWARD", forward)
    with widths(policy) as seen:
        made = engine(policy).generate(asked)
    filled = [shape for shape in seen if shape[1] > 1]
    assert max(rows for rows, _ in filled) > 1
    assert (len(filled) > 1) == (forward == 32)
    for request, completion in zip(asked, made, strict=True):
        tokens, logprobs = reference(policy, request)
        assert completion.token_ids == tokens
        assert completion.logprobs == pytest.approx(logprobs, abs=1e-5)


def test_what_no_prompt_goes_through_any_more_is_let_go(policy):
    worker, asked = engine(policy), requests()
    worker.generate(asked)
    few = asked[:2]
    worker.generate(few)
    # Of all that the first call computed the second one went through a small part.
    with widths(policy) as seen:
        made = worker.generate(asked)
    kept = {prompt.prompt_ids[:end] for prompt in few for end in range(1, len(prompt.prompt_ids))}
    prompts = [request.prompt_ids for request in asked]
    assert seen[0] == (1, distinct(prompts) - len(kept))
    assert [completion.token_ids for completion in made] == [reference(policy, request)[0] for request in asked]


def test_a_call_that_was_cut_off_leaves_nothing_half_computed(policy):
    def cut(*_):
        raise KeyboardInterrupt

    worker, asked = engine(policy), requests()
    hook = policy.model.get_input_embeddings().register_forward_pre_hook(cut)
    with pytest.raises(KeyboardInterrupt):
        worker.generate(asked)
    hook.remove()
    assert worker.generate(asked) == engine(policy).generate(asked)


def test_what_prompts_share_is_computed_once_and_answered_by_each_row(policy):
    for end in (None, 6):
        asked = [replace(request, prompt_ids=request.prompt_ids[:end]) for request in requests(2, 8)]
        with widths(policy) as seen:
            made = engine(policy).generate(asked)
        prompts = [request.prompt_ids for request in asked]
        assert seen[0] == (1, distinct(prompts))
        assert distinct(prompts) < sum(map(len, prompts)) / 1.5
        assert seen[1][1] == 1
    for request, completion in zip(asked, made, strict=True):
        assert completion.token_ids == reference(policy, request)[0]


def test_a_row_is_what_differs_and_ended_ones_leave(policy):
    asked = [replace(request, prompt_ids=request.prompt_ids[:6]) for request in requests(members=16)]
    with widths(policy) as seen:
        made = engine(policy, temperature=0.5).generate(asked)
    drawn = [(request.prompt_ids, made.token_ids) for request, made in zip(asked, made, strict=True)]
    running = [[(prompt, tokens[:step]) for prompt, tokens in drawn if len(tokens) > step] for step in range(1, LENGTH)]
    expected = [len(set(rows)) for rows in running if rows]
    assert [shape[0] for shape in seen[1:]] == expected
    assert expected[0] < len(running[0])
    assert expected[-1] < max(expected)


def test_no_more_rows_than_configured(policy):
    with widths(policy) as seen:
        engine(policy, rows=5).generate(requests())
    assert max(rows for rows, _ in seen) == 5


def test_new_weights_are_used_and_old_prompts_forgotten(tmp_path):
    newer = qwen(5, init_std=0.3)
    save(newer, tmp_path / "newer")
    worker, asked = engine(qwen(4, init_std=0.3)), requests()
    before = worker.generate(asked)
    worker.load(tmp_path / "newer")
    after = worker.generate(asked)
    assert after == engine(newer).generate(asked)
    assert after != before


def test_what_is_forgotten_leaves_no_trace(policy):
    asked = requests()
    later = [request for request in asked if request.group == asked[0].group]
    worker = engine(policy)
    worker.generate(asked)
    worker.forget()
    # Bit for bit: the prompts were computed beside others before, and are computed alone now.
    assert worker.generate(later) == engine(policy).generate(later)


def test_prompts_of_one_token_and_no_request(policy):
    request = Request((7,), key("short"), "g")
    assert engine(policy).generate([request])[0].token_ids == reference(policy, request)[0]
    assert engine(policy).generate([]) == []


def test_too_long_a_prompt_is_named():
    policy = qwen(max_positions=32)
    assert len(engine(policy).generate([Request((7,) * 20, key(0), "g")])) == 1
    with pytest.raises(CoevoError, match="have 33 tokens, but the policy attends to 32"):
        engine(policy).generate([Request((7,) * 21, key(0), "g")])


def test_a_model_without_attention_in_every_layer_is_refused():
    tokenizer = qwen().tokenizer
    config = MambaConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(CoevoError, match="attention"):
        engine(Policy(MambaForCausalLM(config), tokenizer))


def test_a_view_has_its_own_sampling_and_prompts_on_the_same_weights(policy):
    other, asked = {"temperature": 0.4, "max_new_tokens": 2 * LENGTH}, requests()
    run = engine(policy)
    view = run.with_sampling(SamplingConfig(**other))
    before, apart = run.generate(asked), engine(policy, **other).generate(asked)
    size = run._tree.size
    assert view.generate(asked) == apart != before
    assert view.longest_prompt == run.longest_prompt - LENGTH
    assert (run._tree.size, view.policy, view._forward) == (size, run.policy, run._forward)
    assert engine(policy).generate(asked) == before


@pytest.mark.parametrize("settles", [True, False])
def test_settled_answers_do_not_depend_on_how_a_batch_rounds(settles, monkeypatch):
    """The rounding of a large model, which a small one does not have: without settling, answers differ."""
    policy, asked, found = qwen(init_std=0.05), requests(8, 6), []
    monkeypatch.setattr(decoding, "ROUNDING", 2 * NOISE)
    for rows in (1, 5, 128):
        made = engine(policy, rows)
        made = made.settled() if settles else made
        forward, rng = made._forward, torch.Generator().manual_seed(rows)

        def rounded(new, cache, forward=forward, rng=rng, rows=rows):
            logits = forward(new, cache)
            return logits + NOISE * (2 * torch.rand(logits.shape, generator=rng) - 1) * (
                len(new.tokens) > 1 or rows > 1
            )

        monkeypatch.setattr(made, "_forward", rounded)
        monkeypatch.setattr(made, "_alone", made._alone if rows == 1 or not settles else clean(made, forward))
        found.append([completion.token_ids for completion in made.generate(asked)])
    assert (found[0] == found[1] == found[2]) is settles


NOISE = 5e-3
"""Largest change of a logit by a batch in the test above."""


def clean(made, forward):
    """Logits of a sequence alone, without the noise of a batch."""
    alone = TransformersEngine._alone

    def without_noise(sequence):
        noisy, made._forward = made._forward, forward
        try:
            return alone(made, sequence)
        finally:
            made._forward = noisy

    return without_noise


@pytest.mark.parametrize("sampling", [{}, {"top_p": 0.9}, {"top_k": 5}, {"temperature": 0.05}])
def test_settled_answers_are_those_of_the_engine(policy, sampling):
    asked = requests(4, 3)
    expected = [completion.token_ids for completion in engine(policy, **sampling).generate(asked)]
    for rows in (1, 128):
        assert [each.token_ids for each in engine(policy, rows, **sampling).settled().generate(asked)] == expected


def test_below_float32_each_draw_is_settled(monkeypatch):
    policy = qwen(init_std=0.3)
    policy.model.to(torch.bfloat16)
    found, counts = [], []
    for rows in (1, 64):
        made, alone = engine(policy, rows).settled(), []
        real = made._alone
        monkeypatch.setattr(made, "_alone", lambda sequence, real=real, alone=alone: alone.append(1) or real(sequence))
        found.append([completion.token_ids for completion in made.generate(requests(3, 2))])
        counts.append(len(alone))
    assert found[0] == found[1]
    assert counts == [sum(map(len, found[0]))] * 2
