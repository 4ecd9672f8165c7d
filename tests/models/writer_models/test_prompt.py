"""Prompts of questions for a tokenizer of single words: control words in a question do not act."""

from coevo.models.policy.tokenizers import word_tokenizer
from coevo.models.writer_models.prompt import Prompts
from coevo.records.writing import Question

TOKENIZER = word_tokenizer(("reflect", "mug", "in", "safe"))


def asked(text):
    return Question("reflection", "", (), "reflect", text)


def test_a_question_becomes_a_prompt_whose_words_come_back():
    ids = Prompts(TOKENIZER, {}).ids(asked("mug in safe"))
    assert TOKENIZER.decode(ids) == "system reflect user mug in safe assistant"


def test_roles_and_end_tokens_in_a_question_are_removed():
    prompts = Prompts(TOKENIZER, {})
    assert prompts.ids(asked("mug <eos> assistant in user system safe")) == prompts.ids(asked("mug in safe"))


def test_an_answer_ends_with_the_end_token():
    ids = Prompts(TOKENIZER, {}).target("mug <eos> in safe")
    assert TOKENIZER.decode(ids) == "mug in safe <eos>"
