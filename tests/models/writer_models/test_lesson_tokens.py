"""Items of lessons among the tokens of an answer, in words and in JSON."""

import json

import pytest
from support.templates import tokenizer as chat_tokenizer

from coevo.models.policy.tokenizers import word_tokenizer
from coevo.models.writer_models.lesson_tokens import items

WORDS = ("lotus", "mug", "in", "safe", "not", "chest", "yes", "%", "/", "?", "#", *map(str, range(10)))


def said(tokenizer, ids, item):
    return tokenizer.decode([ids[place] for place in item])


def test_lessons_in_words_begin_with_their_mark_and_end_with_their_text():
    tokenizer = word_tokenizer(WORDS)
    text = "% 1 / 2 ? yes # 1 lotus mug in safe # 4 lotus mug not in chest"
    ids = [*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
    first, second = items(tokenizer, ids, ["lotus mug in safe", "lotus mug not in chest"])
    assert said(tokenizer, ids, first) == "# 1 lotus mug in safe"
    assert said(tokenizer, ids, second) == "# 4 lotus mug not in chest"
    assert second.stop == len(ids) - 1


LESSONS = [{"lesson": 'say "open"', "step": 1}, {"lesson": "heat the mug in the größte oven", "step": 3}]


@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("before", ["", "<think>heat the mug in the größte oven # maybe</think>\n"])
def test_lessons_in_json_are_their_objects(ascii_only, before):
    tokenizer = chat_tokenizer("qwen3")
    text = before + json.dumps({"success": True, "lessons": LESSONS}, ensure_ascii=ascii_only)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    found = items(tokenizer, ids, [each["lesson"] for each in LESSONS])
    for item, lesson in zip(found, LESSONS, strict=True):
        inner = said(tokenizer, ids, item)
        written = json.dumps(lesson, ensure_ascii=ascii_only)
        # A token may reach over an end of the object, not by more than its neighbours.
        assert written[1:-1] in inner
        assert len(inner) <= len(written) + 4
    assert found[0].stop <= found[1].start


def test_a_field_of_json_may_hold_the_mark_of_lessons_in_words():
    tokenizer = chat_tokenizer("qwen3")
    text = json.dumps({"lessons": [{"when": "door #3 is shut", "lesson": "open it"}]})
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    (item,) = items(tokenizer, ids, ["open it"])
    assert '"when": "door #3' in said(tokenizer, ids, item)


def test_a_text_that_the_answer_lacks_has_no_item():
    tokenizer = word_tokenizer(WORDS)
    ids = tokenizer("# 1 lotus mug in safe", add_special_tokens=False)["input_ids"]
    assert items(tokenizer, ids, ["mug in chest", "lotus mug in safe"]) == [None, range(0, 6)]
    assert items(tokenizer, ids, []) == []
