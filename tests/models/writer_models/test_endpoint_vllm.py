"""Questions to a real vLLM server: its answers follow the schema that they are asked with."""

import json

import pytest
from support.writer_models import model, question

from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.server_client import Client
from coevo.models.engines.vllm.vllm_server import EAGER, EMBEDDED, VllmServer, interpreter
from coevo.models.policy.policy import save
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
KEY = "a-key-of-the-test"
VERDICT = {
    "type": "object",
    "properties": {"level": {"enum": ["principle", "pattern", "example"]}, "done": {"type": "boolean"}},
    "required": ["level", "done"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """A server with random weights, of which no sentence makes sense."""
    directory = tmp_path_factory.mktemp("server")
    save(model(head_dim=32), directory / "model")
    line = [str(interpreter(VllmEngineConfig(type="vllm"))), "-P", "-m", "vllm.entrypoints.openai.api_server"]
    line += ["--model", str(directory / "model"), "--served-model-name", "m", "--dtype", "float32", *EAGER]
    line += ["--structured-outputs-config", '{"backend": "xgrammar", "disable_any_whitespace": true}']
    settings = {**EMBEDDED, "VLLM_CPU_KVCACHE_SPACE": "1", "HF_HUB_OFFLINE": "1", "VLLM_API_KEY": KEY}
    server = VllmServer(line, settings, directory / "log")
    try:
        server.wait(500, Client(server.url, 60).is_ready)
        yield f"{server.url}/v1"
    finally:
        server.stop()


def asked(url, schema, monkeypatch, count=8, **settings):
    """Replies to questions with a schema, and the warnings."""
    monkeypatch.setenv("MY_KEY", KEY)
    config = EndpointWriterModelConfig(type="endpoint", url=url, model="m", key="MY_KEY", max_new_tokens=64, **settings)
    warned = []
    questions = [question(f"why {number}?", schema=json.dumps(schema)) for number in range(count)]
    return [reply for _, reply in EndpointWriterModel(config, warned.append).replies(questions)], warned


def test_an_answer_has_the_form_of_its_schema(url, monkeypatch):
    replies, warned = asked(url, VERDICT, monkeypatch)
    assert not warned
    for reply in replies:
        assert json.loads(reply.text).keys() == {"level", "done"}
    free, _ = asked(url, VERDICT, monkeypatch, constrain="none")
    with pytest.raises(json.JSONDecodeError):  # one of them may open a brace by chance
        [json.loads(reply.text) for reply in free]
