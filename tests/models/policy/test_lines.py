"""Lines are encoded once, and exactly as in the whole text."""

from itertools import accumulate
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.templates import tokenizer
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coevo.models.policy.encoding import TemplateEncoder, divides, lines_of

TEXTS = st.text(st.sampled_from("aZ1é世😀 \n\r\t.,'-{}<>|\x0b\u0301\u3000\u200b\x1c"), min_size=257, max_size=600)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def _plain(pre_tokenizer, normalizer=None):
    """Byte-level tokenizer whose merges join a line break with what stands before and behind it."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    words = ["aa", "1a", "Ċa", "aĊ", "ĊĊ", ".Ċ", "Ġa"]
    vocabulary = {token: number for number, token in enumerate([*alphabet, *words])}
    backend = Tokenizer(models.BPE(vocabulary, [tuple(word) for word in words]))
    backend.pre_tokenizer, backend.normalizer = pre_tokenizer, normalizer
    return backend


def _level(*before):
    return pre_tokenizers.Sequence([*before, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def _split(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


@pytest.mark.parametrize("name", ["qwen3", "llama3"])
@given(TEXTS)
@settings(max_examples=100)
def test_ids_of_lines_are_those_of_the_whole_text(name, text):
    made = tokenizer(name)
    assert list(TemplateEncoder(made).data(text)) == made(text, add_special_tokens=False)["input_ids"]


@pytest.mark.full
@given(TEXTS)
def test_gpt2s_words_divide_too(text):
    backend = _plain(_level(_split(GPT2)))
    assert divides(backend)
    assert [i for line in lines_of(text) for i in backend.encode(line).ids] == backend.encode(text).ids


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param(_plain(_level()), id="one piece"),
        pytest.param(_plain(_level(_split(r"\n?[^\n]+"))), id="break before a line"),
        pytest.param(_plain(_level(_split(r"[a-z]\n[a-z]|."))), id="letters alone"),
        pytest.param(_plain(_level(_split(GPT2)), normalizers.Replace("\n", " ")), id="normalizer"),
    ],
)
def test_tokenizer_that_joins_lines_gets_the_whole_text(backend):
    assert not divides(backend)
    text = "a\na.\n1a\n\na\n" * 60
    made = PreTrainedTokenizerFast(tokenizer_object=backend)
    assert list(TemplateEncoder(made).data(text)) == backend.encode(text).ids


def test_lines_divide_between_dark_characters_only():
    assert lines_of("a\nb\n\nc\n d \ne\n") == ["a\n", "b\n\nc\n d \ne\n"]
    assert lines_of("") == [""]
    assert lines_of("\na") == ["\na"]


def test_growing_text_costs_what_is_new():
    made = tokenizer("qwen3")
    lines = [f"Action: go to place {number}, then open door {number * 7}\n" for number in range(400)]
    texts = list(accumulate(lines))[-100:]
    encoder, backend = TemplateEncoder(made), made.backend_tokenizer
    encoder.data(texts[0])
    since = process_time()
    found = [encoder.data(text) for text in texts]
    spent, since = process_time() - since, process_time()
    whole = [backend.encode(text, add_special_tokens=False).ids for text in texts]
    assert list(map(list, found)) == whole
    assert spent < (process_time() - since) / 3
