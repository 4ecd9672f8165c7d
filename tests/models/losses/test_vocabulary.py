"""Log-probs in chunks equal those of the whole vocabulary at once, gradients included, in less memory."""

import pytest
import torch
from torch.nn import functional

from coevo.models.losses import vocabulary
from coevo.models.losses.vocabulary import LogitScale, token_logprobs, token_loss

TOKENS, HIDDEN, WORDS = 23, 8, 30


def drawn(bias, trained=True):
    torch.manual_seed(0)
    hidden, weight = torch.randn(TOKENS, HIDDEN, requires_grad=True), torch.randn(WORDS, HIDDEN, requires_grad=trained)
    return hidden, weight, torch.randn(WORDS, requires_grad=trained) if bias else None, torch.randint(WORDS, (TOKENS,))


def whole(hidden, weight, bias, targets, scale):
    logits = functional.linear(hidden, weight, bias) * scale.factor
    if scale.cap is not None:
        logits = scale.cap * torch.tanh(logits / scale.cap)
    logprobs = torch.log_softmax(logits / scale.temperature, -1)
    return logprobs[torch.arange(TOKENS), targets], -(logprobs.exp() * logprobs).sum(-1)


@pytest.mark.parametrize("chunk", [1, 7, TOKENS, 100])
@pytest.mark.parametrize("scale", [LogitScale(0.8), LogitScale(0.8, 0.5), LogitScale(1.3, 2.0, cap=3.0)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("of", ["logprobs", "entropies", "both"])
def test_chunks_equal_the_whole(monkeypatch, chunk, scale, bias, of):
    monkeypatch.setattr(vocabulary, "VALUES", chunk * WORDS)
    factors = torch.linspace(-1, 1, TOKENS)
    results = []
    for compute in (lambda *given: token_logprobs(*given, scale, True), lambda *given: whole(*given, scale)):
        *leaves, targets = drawn(bias)
        logprobs, entropies = compute(*leaves, targets)
        losses = {"logprobs": factors @ logprobs, "entropies": factors @ entropies}
        (losses[of] if of in losses else losses["logprobs"] + 0.3 * losses["entropies"]).backward()
        results.append([logprobs, entropies, *(leaf.grad for leaf in leaves if leaf is not None)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=2e-5, rtol=1e-4)


def test_a_worked_value():
    weight = torch.tensor([[1.0], [0.0]])
    logprobs, entropies = token_logprobs(torch.tensor([[2.0]]), weight, None, torch.tensor([1]), LogitScale(2.0), False)
    assert logprobs.item() == pytest.approx(-1.3132617, abs=1e-6)  # -log(1 + e)
    assert entropies.item() == pytest.approx(0.5822031, abs=1e-6)  # of (e, 1) / (1 + e)


def test_a_frozen_layer_and_entropies_without_gradient():
    hidden, weight, bias, targets = drawn(bias=True, trained=False)
    logprobs, entropies = token_logprobs(hidden, weight, bias, targets, LogitScale(1.0), False)
    assert not entropies.requires_grad
    logprobs.sum().backward()
    assert weight.grad is bias.grad is None
    assert hidden.grad.abs().sum() > 0


def test_nothing_of_the_vocabularys_size_is_kept(monkeypatch):
    monkeypatch.setattr(vocabulary, "VALUES", 5 * WORDS)
    kept = []
    hidden, weight, bias, targets = drawn(bias=False)
    with torch.autograd.graph.saved_tensors_hooks(lambda it: kept.append(it) or it, lambda it: it):
        token_logprobs(hidden, weight, bias, targets, LogitScale(1.0), True)
    assert all(it is weight or it.numel() <= TOKENS * HIDDEN for it in kept)


def factored(factors, logprobs, entropies):
    """A loss whose gradient at a token depends on the token's own values."""
    return (factors * (logprobs / 4).exp() + 0.3 * factors * entropies.square()).sum()


@pytest.mark.parametrize("chunk", [1, 7, TOKENS])
@pytest.mark.parametrize("scale", [LogitScale(0.8), LogitScale(1.3, 2.0, cap=3.0)])
@pytest.mark.parametrize("bias", [False, True])
def test_a_loss_by_token_equals_that_of_the_whole(monkeypatch, chunk, scale, bias):
    monkeypatch.setattr(vocabulary, "VALUES", chunk * WORDS)
    factors, results = torch.linspace(-1, 1, TOKENS), []
    for fused in (True, False):
        *leaves, targets = drawn(bias)
        if fused:
            loss, logprobs, entropies = token_loss(*leaves, targets, scale, lambda *of: factored(factors, *of))
            assert not logprobs.requires_grad
            assert not entropies.requires_grad
        else:
            logprobs, entropies = whole(*leaves, targets, scale)
            loss = factored(factors, logprobs, entropies)
        (3 * loss).backward()
        results.append([loss, logprobs, entropies, *(leaf.grad for leaf in leaves if leaf is not None)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, atol=5e-5, rtol=1e-4)


@pytest.mark.parametrize("scale", [LogitScale(0.8), LogitScale(1.3, 2.0, cap=3.0)])
@pytest.mark.parametrize("trained", range(3), ids=["hidden", "weight", "bias"])
def test_gradients_reach_what_is_trained_and_nothing_else(trained, scale):
    factors, results = torch.linspace(-1, 1, TOKENS), []
    for compute in (
        lambda *given: token_loss(*given, scale, lambda *of: factored(factors, *of))[0],
        lambda *given: factored(factors, *token_logprobs(*given, scale, True)),
        lambda *given: factored(factors, *whole(*given, scale)),
    ):
        *leaves, targets = drawn(bias=True)
        for place, leaf in enumerate(leaves):
            leaf.requires_grad_(place == trained)
        compute(*leaves, targets).backward()
        assert [leaf.grad is None for leaf in leaves] == [place != trained for place in range(3)]
        results.append(leaves[trained].grad)
    for result in results[:2]:
        torch.testing.assert_close(result, results[2], atol=5e-5, rtol=1e-4)


@pytest.fixture
def counted(monkeypatch):
    """Tokens of each chunk whose logits are computed."""
    found, compute = [], vocabulary._logits
    monkeypatch.setattr(vocabulary, "_logits", lambda *of: found.append(len(of[0])) or compute(*of))
    return found


@pytest.mark.parametrize(
    ("values", "sizes"),
    [(WORDS - 1, [1] * 23), (2 * WORDS - 1, [1] * 23), (10 * WORDS, [10, 10, 3]), (99 * WORDS, [23])],
)
def test_a_chunk_has_as_many_tokens_as_its_logits_allow_and_at_least_one(monkeypatch, counted, values, sizes):
    monkeypatch.setattr(vocabulary, "VALUES", values)
    token_logprobs(*drawn(bias=False), LogitScale(1.0), False)
    assert counted == sizes


@pytest.mark.parametrize("trained", [False, True])
def test_a_loss_by_token_computes_the_logits_once(monkeypatch, counted, trained):
    monkeypatch.setattr(vocabulary, "VALUES", 5 * WORDS)
    *leaves, targets = drawn(bias=True, trained=trained)
    token_loss(*leaves, targets, LogitScale(1.0), lambda logprobs, _: logprobs.sum())[0].backward()
    assert sum(counted) == TOKENS
    assert (leaves[1].grad is not None) == trained
