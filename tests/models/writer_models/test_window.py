"""Room of a question at an endpoint: an estimate below the context that settings or endpoint state."""

import pytest
from support.completions import Answer, completions, said

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.models.writer_models.endpoint_writer_model import TEMPLATE, UNBOUNDED, EndpointWriterModel
from coevo.models.writer_models.writer_model import room_of


def room(url, **settings):
    settings = {"model": "m", "max_new_tokens": 1000, **settings}
    return room_of(EndpointWriterModel(EndpointWriterModelConfig(type="endpoint", url=url, **settings), pytest.fail))


def models(*listed):
    return Answer({"object": "list", "data": [{"id": "other", "max_model_len": 512}, *listed]})


@pytest.mark.parametrize(
    ("listed", "context"),
    [
        (models({"id": "m", "max_model_len": 4096}), 4096),  # vLLM, SGLang
        (models({"id": "m", "context_length": 8192}), 8192),  # OpenRouter, Together
        (models({"id": "m", "context_window": 131072}), 131072),  # Groq
        (models({"id": "m", "max_context_length": 32768}), 32768),  # Mistral
        (models({"id": "m", "meta": {"n_ctx": 2048, "n_ctx_train": 32768}}), 2048),  # llama.cpp
        (models({"id": "m", "meta": None, "max_model_len": None}), None),
        (models({"id": "m", "object": "model", "owned_by": "x"}), None),  # OpenAI, Ollama
        (models(), None),
        (models({"id": "m", "max_model_len": "long"}), None),
        (models({"id": "m", "max_model_len": -1}), None),
        (models({"id": "m", "max_model_len": 10**30}), None),
        (Answer(b""), None),
        (Answer(b'{"data": 1}'), None),
        (Answer(b"no", 404), None),
        (Answer(b"no", 500), None),
        (Answer(b"", 302, {"Location": "http://127.0.0.1:1/"}), None),
    ],
)
def test_a_question_stays_below_the_context_that_the_endpoint_states(listed, context):
    with completions(lambda _: said("x"), listed) as (url, requests):
        found = room(url)
    assert found.tokens == (context or UNBOUNDED) - 1000 - TEMPLATE
    assert found.size("größer 😀") == 6  # five letters and blanks, and eight bytes of others
    assert requests == []


def test_the_context_of_the_settings_is_not_asked_for():
    assert room("http://127.0.0.1:1/v1", context=6000).tokens == 5000 - TEMPLATE


def test_an_endpoint_that_is_not_there_bounds_nothing():
    assert room("http://127.0.0.1:1/v1").tokens > 10**8
