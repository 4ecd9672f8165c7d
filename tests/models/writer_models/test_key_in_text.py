"""Hiding of a key: whatever characters it has, and in no more than linear time."""

import time

import pytest

from coevo.models.writer_models.chat_endpoint import Secret

KEYS = ["sk-of-a-test+", "n" * 12, "a%20b%20c%20", "a\\nb\\c\\'de", "${key}.*[?]"]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("form", [str, repr, lambda key: repr(repr(key)[1:-1]), " ".join], ids=range(4))
def test_a_key_of_any_characters_is_hidden_and_the_text_around_it_stays(key, form):
    assert Secret(key).hidden(f"use {form(key).strip(chr(39))}, not {key[:-1]}") in (
        f"use ***, not {key[:-1]}",
        f'use "***", not {key[:-1]}',
    )


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("part", ["\\", "\\n", "n", "n\\n", "%25", "s" + "\\" * 9])
def test_no_text_takes_long(key, part):
    text = part * (100_000 // len(part))
    since = time.process_time()
    Secret(key).hidden(text)
    assert time.process_time() - since < 2
