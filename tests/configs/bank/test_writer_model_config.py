"""Writer models: what they accept, and their conflicts with the rest of a run."""

import pytest
from pydantic import TypeAdapter, ValidationError

from coevo.configs.bank.writer_model_config import (
    AnyWriterModelConfig,
    EndpointWriterModelConfig,
    FrozenWriterModelConfig,
    PolicyWriterModelConfig,
)
from coevo.configs.load.load import load_recipe
from coevo.configs.trust_settings import chosen

ENDPOINT = {"type": "endpoint", "url": "https://api.example.com/v1", "model": "m"}
FROZEN = {"type": "frozen", "path": "here"}
WORDS, CHAT = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b"
VLLM = {"type": "vllm"}


def writer_model(given):
    return TypeAdapter(AnyWriterModelConfig).validate_python(given)


GOOD = {
    "policy": {"type": "policy"},
    "frozen": FROZEN,
    "frozen in half precision": {**FROZEN, "dtype": "bfloat16"},
    "frozen in servers": {**FROZEN, "engine": VLLM},
    "endpoint": ENDPOINT,
    "port": {**ENDPOINT, "url": "http://localhost:8000/v1"},
    "greedy": {**ENDPOINT, "temperature": 0.0},
    "bounded": {**ENDPOINT, "budget": {"tokens": 10**6, "cost": 2.5}, "price": {"prompt": 0.1, "answer": 0.4}},
    "bounded without prices": {**FROZEN, "budget": {"tokens": 10**6}},
}


@pytest.mark.parametrize("given", GOOD.values(), ids=GOOD)
def test_it_is_read_and_written_as_it_was(given):
    made = writer_model(given)
    assert writer_model(made.model_dump()) == made


BAD = {
    "no address": ({**ENDPOINT, "url": "api.example.com"}, "is not an address: set one such as"),
    "another scheme": ({**ENDPOINT, "url": "file:///etc/passwd"}, "is not an address"),
    "no host": ({**ENDPOINT, "url": "http:///v1"}, "is not an address"),
    "no port": ({**ENDPOINT, "url": "http://a:99999/v1"}, "is not an address"),
    "two lines": ({**ENDPOINT, "url": "http://a/v1\nx"}, "is not an address"),
    "a password": ({**ENDPOINT, "url": "http://me:secret@a/v1"}, "may hold a secret: name an environment variable"),
    "a key in the address": ({**ENDPOINT, "url": "http://a/v1?key=secret"}, "may hold a secret"),
    "a user": ({**ENDPOINT, "url": "http://me@a/v1"}, "may hold a secret"),
    "a fragment": ({**ENDPOINT, "url": "http://a/v1#secret"}, "may hold a secret"),
    "the key itself": ({**ENDPOINT, "key": "sk-secret"}, "not the name of an environment variable"),
    "a field that is set": ({**ENDPOINT, "extra": {"messages": []}}, "messages is set by coevo itself"),
    "cost without prices": ({**ENDPOINT, "budget": {"cost": 1.0}}, "set price={prompt: 1.0, answer: 4.0}"),
    "a greedy engine": ({**FROZEN, "temperature": 0.0}, "greater than 0"),
    "precision of servers": ({**FROZEN, "engine": VLLM, "dtype": "bfloat16"}, "set engine.dtype=bfloat16"),
    "no model": ({**ENDPOINT, "model": ""}, "at least 1 character"),
}


@pytest.mark.parametrize(("given", "reason"), BAD.values(), ids=BAD)
def test_it_is_refused_with_a_remedy(given, reason):
    with pytest.raises(ValidationError) as refused:
        writer_model(given)
    assert reason in str(refused.value)


def test_what_reaches_a_network_or_loads_a_model_needs_trust():
    given = {**ENDPOINT, "key": "MY_KEY", "extra": {"top_p": 0.9}}
    assert [each.name for each in chosen(writer_model(given))] == ["url", "key", "extra"]
    assert [each.name for each in chosen(writer_model(FROZEN))] == ["path"]
    assert [each.name for each in chosen(writer_model({**FROZEN, "engine": {**VLLM, "python": "x"}}))] == [
        "path",
        "engine.python",
    ]


def asking(writer_model):
    """Override that gives a recipe's writer this writer model."""
    return f"bank.writer={{type: model-contrast, model: {writer_model.model_dump_json()}}}"


@pytest.mark.parametrize(
    ("writer_model", "recipe"),
    [
        (PolicyWriterModelConfig(), CHAT),
        (FrozenWriterModelConfig(**FROZEN), WORDS),
        (EndpointWriterModelConfig(**ENDPOINT), WORDS),
    ],
)
def test_a_recipe_takes_any_writer_model(writer_model, recipe):
    assert load_recipe(recipe, [asking(writer_model)]).bank.writer.model == writer_model
