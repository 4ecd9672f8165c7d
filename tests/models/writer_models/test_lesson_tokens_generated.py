"""Items of generated answers among the tokens of all kinds of tokenizers.

Each part of an answer is encoded by itself, so that the tokens of its items are known.
"""

import json
from functools import cache
from itertools import pairwise
from string import ascii_letters

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.templates import tokenizer as chat_tokenizer
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from coevo.memory.writers.model.answers import fields_of
from coevo.models.answers.thinking import without_thinking
from coevo.models.writer_models.lesson_tokens import items
from coevo.records.lenient import value_at

ALPHABET = f'{ascii_letters}0123456789 {{}}[]",:\\/#.<>|!?\n\t'
"""Characters with a token; others are written byte by byte."""


@cache
def byte_fallback(kind):
    """A tokenizer that has a token for each byte of a character outside of ``ALPHABET``."""
    words = ["<unk>", "<eos>", *(f"<0x{byte:02X}>" for byte in range(256)), *ALPHABET, "▁"]
    vocabulary = {word: index for index, word in enumerate(dict.fromkeys([*words, '{"', '"}', '"lesson"', "}]", "},"]))}
    pairs = [("{", '"'), ('"', "}"), ("}", "]"), ("}", ",")]
    backend = Tokenizer(models.BPE(vocabulary, pairs, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    whole = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    if kind == "prepend":  # as Llama 2
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
        backend.decoder = decoders.Sequence([*whole, decoders.Strip(" ", 1, 0)])
    elif kind == "metaspace":  # as Mistral
        backend.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
        backend.decoder = decoders.Sequence([*whole, decoders.Strip(" ", 1, 0)])
    else:  # as Gemma
        backend.normalizer = normalizers.Replace(" ", "▁")
        backend.decoder = decoders.Sequence(whole)
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", eos_token="<eos>")


TOKENIZERS = {
    "qwen": lambda: chat_tokenizer("qwen3"),
    "llama 3": lambda: chat_tokenizer("llama3"),
    "prepend": lambda: byte_fallback("prepend"),
    "metaspace": lambda: byte_fallback("metaspace"),
    "replace": lambda: byte_fallback("replace"),
}

TEXTS = st.text(st.sampled_from('ab {}[]",:\\/#é漢字ßя😀👩🏽‍🚀\n.'), min_size=1, max_size=12)
SPELLINGS = ("as it is", "json", "\\u")


@st.composite
def spelled(draw, text):
    """A text as a string of JSON, each character in one of its spellings."""
    made = [draw(st.sampled_from(tuple(_spellings(char)))) for char in text]
    return f'"{"".join(made)}"'


def _spellings(char):
    yield json.dumps(char)[1:-1]
    yield json.dumps(char, ensure_ascii=False)[1:-1]
    units = char.encode("utf-16-be")
    yield "".join(f"\\u{units[at] << 8 | units[at + 1]:04X}" for at in range(0, len(units), 2))
    if char == "/":
        yield "\\/"


@st.composite
def parts(draw, text):
    """An item as JSON, with other fields before and behind its text."""
    gap = draw(st.sampled_from(("", " ", "\n  ")))
    fields = {"lesson": draw(spelled(text)), "when": draw(spelled(draw(TEXTS))), "step": "3"}
    order = draw(st.permutations(list(fields)))
    return "{" + f",{gap}".join(f'"{name}":{gap}{fields[name]}' for name in order) + "}"


@st.composite
def answer(draw):
    """Parts of an answer with the places of its items, and their texts."""
    texts = draw(st.lists(TEXTS, min_size=1, max_size=5))
    said = [draw(parts(text)) for text in texts]
    gap = draw(st.sampled_from(("", " ", "\n")))
    echo = f'{{"subtask":{json.dumps(texts[0])},"done":true}}'
    before, behind = draw(st.sampled_from((("", ""), (f'"subtasks":[{echo}],', ""), ("", f',"subtasks":[{echo}]'))))
    draft = f'{{"lessons":[{said[0]}'
    opening = draw(st.sampled_from(("", "```json\n", f"<think>{draft}]}}</think>", f"A draft: {draft}]}}. Now: ")))
    closing = draw(st.sampled_from(("", "\n```", f"\nOr: {draft}")))
    found = [f'{opening}{{{before}"lessons":{gap}[']
    for number, item in enumerate(said):
        found += [f",{gap}", item] if number else [item]
    return [*found, f"]{behind}}}{closing}"], texts


def encoded(tokenizer, said):
    """Token ids of parts, and the range of every second one, which is an item."""
    ids, places = list[int](), list[range]()
    for number, part in enumerate(said):
        own = tokenizer(part, add_special_tokens=False)["input_ids"]
        if number % 2:
            places.append(range(len(ids), len(ids) + len(own)))
        ids += own
    return [*ids, tokenizer.eos_token_id], places


def trimmed(tokenizer, ids, found):
    """Ranges without tokens of blanks, which a tokenizer puts before a part."""
    return [
        range(each.start + (not tokenizer.decode(ids[each.start : each.start + 1]).strip()), each.stop)
        for each in found
    ]


@pytest.mark.parametrize("name", TOKENIZERS)
@given(made=answer())
@settings(max_examples=60)
def test_an_item_has_its_own_tokens_whatever_its_answer_holds(name, made):
    said, texts = made
    tokenizer = TOKENIZERS[name]()
    ids, places = encoded(tokenizer, said)
    fields, _ = fields_of(without_thinking(tokenizer.decode(ids[:-1]), False).text.strip(), "lessons")
    assert fields is not None
    read = [item["lesson"] for item in fields["lessons"]]
    found = items(tokenizer, ids, read)
    assert None not in found
    assert trimmed(tokenizer, ids, found) == trimmed(tokenizer, ids, places)
    assert len(read) == len(texts)


@pytest.mark.parametrize("name", TOKENIZERS)
@given(made=answer())
@settings(max_examples=25)
def test_items_of_tokens_that_reach_over_their_ends_hold_their_lessons_and_no_others(name, made):
    said, texts = made
    tokenizer = TOKENIZERS[name]()
    ids = tokenizer("".join(said), add_special_tokens=False)["input_ids"]
    found = items(tokenizer, ids, texts)
    for item, part in zip(found, said[1::2], strict=True):
        assert item is not None
        decoded = tokenizer.decode(ids[item.start : item.stop])
        assert part[1:-1] in decoded
        assert len(decoded) <= len(part) + 8
    assert all(one.stop <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize("texts", [("été", "漢字", "größe"), ("ภาษา", "😀", "ßß"), ("🎉🎉", "é", "é", "漢漢漢")])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_three_items_of_characters_that_no_token_holds_are_told_apart(name, texts):
    tokenizer = TOKENIZERS[name]()
    said = json.dumps({"lessons": [{"lesson": text} for text in texts]}, ensure_ascii=False)
    ids = tokenizer(said, add_special_tokens=False)["input_ids"]
    found = items(tokenizer, ids, texts)
    decoded = [tokenizer.decode(ids[item.start : item.stop]) for item in found]
    assert all(text in part for text, part in zip(texts, decoded, strict=True))
    assert all(one.stop <= other.start for one, other in pairwise(found))


@pytest.mark.parametrize(
    ("text", "lesson"),
    [
        ('{"lessons": [{"lesson": "say \\u00e9t\\u00e9 \\ud83d\\ude00 or \\/"}]}', "say été 😀 or /"),
        ('{"lessons": [{"when": "{a} [b] }", "lesson": "close the {", "when_not": "}"}]}', "close the {"),
        ('{"less\\u006fns": [{"l\\u0065sson": "open it"}]}', "open it"),
        ('{"lessons": [{"lesson": "open it"}, {"lesson": "a "quote""}, {"lesson": "shut it"}]}', "shut it"),
        ('{"lessons": [{"lesson": "open it"}, {"lesson": "shut', "open it"),
        ('{"lessons": [{"lesson": "open it"}], "success": true', "open it"),
        ('{"lessons": [{"lesson": "open it",}, {"lesson": "shut it",},]}', "shut it"),
        ("{'lessons': [{'lesson': 'open it', 'n': None}, {'lesson': \"it's\", 'n': 1}]}", "it's"),
        ("{lessons: [{'lesson': 'it\\'s', }, {\"lesson\": \"shut it\"}]}", "it's"),
        ('{"lessons": [{"lesson": "open it" // so {x}\n}, {"lesson": "shut it"}]}', "open it"),
        ('{"lessons": [{"lesson": "open it"} {"lesson": "shut it"}], ...}', "shut it"),
        ("made = dict(lessons=[{'when': 'a # b', 'lesson': 'open it'}])", "open it"),
    ],
)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_spellings_and_flaws_of_an_answer(name, text, lesson):
    tokenizer = TOKENIZERS[name]()
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    (item,) = items(tokenizer, ids, [lesson])
    inner = tokenizer.decode(ids[item.start : item.stop])
    written = inner[inner.index("{") : inner.rindex("}") + 1]
    assert value_at(written, 0) == ({**value_at(written, 0)[0], "lesson": lesson}, len(written))


class Rewriting:
    """A tokenizer whose text of some tokens is not the part of the text of all of them."""

    all_special_ids, bos_token_id, eos_token_id, pad_token_id, unk_token_id = (), None, None, None, None

    def __init__(self, tokenizer):
        self._tokenizer = tokenizer

    def decode(self, ids):
        text = self._tokenizer.decode(ids)
        return text if text.startswith("{") and text.endswith("]}") else text.upper()


def test_an_item_that_does_not_decode_to_its_lesson_has_no_tokens():
    tokenizer = TOKENIZERS["replace"]()
    ids = tokenizer('{"lessons":[{"lesson":"open it"}]}', add_special_tokens=False)["input_ids"]
    assert items(tokenizer, ids, ["open it"]) != [None]
    assert items(Rewriting(tokenizer), ids, ["open it"]) == [None]
