"""Real vLLM, started by the engine itself."""

import json
import math
import shutil
import time
import urllib.request
from collections import Counter
from contextlib import closing
from dataclasses import replace
from urllib.error import HTTPError

import psutil
import pytest
import torch
from scipy.stats import chisquare
from support.families import command_of
from support.policies import requests

from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.vllm import vllm_engine as module
from coevo.models.engines.vllm.expected import ExpectedDigests
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.policy.policy import load, save
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]
ASKED = requests(groups=4, members=6)
TEMPERATURE, LENGTH = 0.7, 8


def tokens(completions):
    return [completion.token_ids for completion in completions]


@torch.inference_mode()
def gap(policy, completions, asked=ASKED):
    """Largest distance of log-probs from a forward of our own, one sequence at a time."""
    worst = 0.0
    for request, made in zip(asked, completions, strict=True):
        ids = torch.tensor([request.prompt_ids + made.token_ids])
        logprobs = (policy.model(input_ids=ids).logits[0].double() / TEMPERATURE).log_softmax(-1)
        ours = logprobs[len(request.prompt_ids) - 1 : -1].gather(-1, torch.tensor(made.token_ids)[:, None])
        worst = max(worst, float((ours.squeeze(-1) - torch.tensor(made.logprobs)).abs().max()))
    return worst


def test_completions_are_the_policys(engine, policies):
    made = engine.generate(ASKED)
    assert gap(load(policies / "a"), made) < 1e-5
    ends = {completion.finished for completion in made}
    assert ends == {True, False}
    for completion in made:
        assert completion.finished == (completion.token_ids[-1] == engine.policy.tokenizer.eos_token_id)
        assert completion.text == engine.policy.tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        assert completion.finished or len(completion.token_ids) == LENGTH


def adapters_in(engine):
    """Names of the adapters that the server has."""
    key = {"Authorization": f"Bearer {engine.key}"}
    request = urllib.request.Request(f"{engine.replicas[0].url}/v1/models", headers=key)
    with urllib.request.urlopen(request, timeout=60) as response:
        return {each["id"] for each in json.load(response)["data"] if each["parent"]}


def test_a_draw_belongs_to_its_key_alone(engine):
    first = engine.generate(ASKED)
    assert tokens(engine.generate(ASKED[::-1])[::-1]) == tokens(first)
    assert tokens(engine.generate(ASKED[5:6])) == tokens(first[5:6])
    alike = [replace(ASKED[0], key=key("replica", row)) for row in range(8)]
    assert len(set(tokens(engine.generate(alike)))) > 4
    assert engine.generate([]) == []


def test_draws_follow_the_policy(engine, policies):
    rows = 2000
    made = engine.generate([Request(ASKED[0].prompt_ids, key("draw", row), "g") for row in range(rows)])
    drawn = Counter(completion.token_ids[0] for completion in made)
    with torch.inference_mode():
        logits = load(policies / "a").model(input_ids=torch.tensor([ASKED[0].prompt_ids])).logits[0, -1].double()
    expected = (logits / TEMPERATURE).softmax(-1) * rows
    assert expected.min() > 5
    assert chisquare([drawn[token] for token in range(len(expected))], expected.tolist()).pvalue > 1e-4


@pytest.mark.soak
def test_servers_by_url_answer_alike_however_many_there_are(engine, policies, tmp_path, monkeypatch):
    first = engine.generate(ASKED)
    monkeypatch.setenv("COEVO_VLLM_API_KEY", engine.key)
    url = engine.replicas[0].url
    config = VllmEngineConfig(type="vllm", urls=(url, url))
    sampling = SamplingConfig(temperature=TEMPERATURE, max_new_tokens=LENGTH)
    with closing(VllmEngine(policies / "a", config, sampling, tmp_path / "keyed")) as two:
        assert tokens(two.generate(ASKED)) == tokens(first)
        with closing(VllmEngine(policies / "b", config, sampling, tmp_path / "other")) as other:
            assert tokens(other.generate(ASKED)) != tokens(first)
        refused = r"it has other weights: another process has loaded its own.*give each run a server of its own"
        with pytest.raises(CoevoError, match=refused):
            two.generate(ASKED)
    free = VllmEngineConfig(type="vllm", urls=(url,), draws="free")
    with closing(VllmEngine(policies / "a", free, sampling, tmp_path / "free")) as other:
        made = other.generate([ASKED[0]] * 12)
        assert gap(load(policies / "a"), made, [ASKED[0]] * 12) < 1e-5
        assert len(set(tokens(made))) > 6
    assert engine.replicas[0].server.runs()


def test_new_weights_are_used_tied_or_not(engine, policies, tmp_path):
    before = engine.generate(ASKED)
    engine.load(policies / "b")
    after = engine.generate(ASKED)
    assert gap(load(policies / "b"), after) < 1e-5
    assert tokens(after) != tokens(before)
    untied = load(policies / "b")
    untied.model.config.tie_word_embeddings = False
    untied.model.lm_head.weight = torch.nn.Parameter(torch.randn_like(untied.model.lm_head.weight) * 0.1)
    save(untied, tmp_path / "untied")
    engine.load(tmp_path / "untied")
    assert gap(untied, engine.generate(ASKED)) < 1e-5
    engine.load(policies / "a")
    assert tokens(engine.generate(ASKED)) == tokens(before)


def test_a_load_takes_a_fifth_of_a_second(engine, policies):
    seconds = []
    for name in ("b", "a") * 4:
        since = time.perf_counter()
        engine.load(policies / name)
        seconds.append(time.perf_counter() - since)
    assert min(seconds) <= 0.2


def test_weights_that_do_not_arrive_are_noticed(engine, policies, monkeypatch):
    """vLLM's reload of tied embeddings: the output layer silently stays as it was."""
    monkeypatch.setattr(module, "serve_model", shutil.copytree)
    with pytest.raises(
        CoevoError, match=r"does not have the policy's weights: its lm_head.weight is not that"
    ) as raised:
        engine.load(policies / "b")
    assert "\n" not in str(raised.value)


def test_one_changed_value_of_any_tensor_is_noticed_by_its_digest(engine, policies, tmp_path, monkeypatch):
    """Differences that no log-prob shows: the files change after their digests were taken."""
    first = ExpectedDigests.of(engine._weights.directory, torch.float32)
    for name in ("model.layers.1.self_attn.v_proj.weight", "model.layers.0.mlp.up_proj.weight", "model.norm.weight"):
        changed = load(policies / "a")
        changed.model.get_parameter(name).data.view(-1)[-1] += 1e-6
        save(changed, tmp_path / name)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ExpectedDigests, "of", lambda *_: first)
            with pytest.raises(CoevoError, match=f"its {name} is not that of the files"):
                engine.load(tmp_path / name)
        engine.load(policies / "a")


def test_a_load_computes_no_probe(engine, policies):
    engine.load(policies / "b")
    assert engine._weights.known is None


def test_a_prompt_that_is_too_long_is_named(engine):
    with pytest.raises(CoevoError, match="have 513 tokens, but the policy attends to 512"):
        engine.generate([Request((7,) * 505, key(0), "g")])
    (made,) = engine.generate([Request((7,) * 504, key(0), "g")])
    assert all(map(math.isfinite, made.logprobs))


def test_adapters_are_loaded_on_top_of_their_base(engines, policies):
    engine = engines["adapters"]
    engine.load(policies / "lora-a")
    first = engine.generate(ASKED)
    assert gap(load(policies / "lora-a"), first) < 1e-5
    assert gap(load(policies / "a"), first) > 0.1
    names = [adapters_in(engine)]
    engine.load(policies / "lora-b")
    assert gap(load(policies / "lora-b"), engine.generate(ASKED)) < 1e-5
    names.append(adapters_in(engine))
    engine.load(policies / "lora-a")
    assert tokens(engine.generate(ASKED)) == tokens(first)
    names.append(adapters_in(engine))
    # A name per version: a server that keeps an answer of an older version cannot give it for a newer one.
    assert [len(each) for each in names] == [1, 1, 1]
    assert len(set().union(*names)) == 3


ATTACKS = {
    "/collective_rpc": {"method": "reload_weights", "kwargs": {"weights_path": "/nowhere"}},
    "/sleep?level=2": {},
    "/wake_up": {},
    "/reset_prefix_cache": {},
    "/pause": {},
    "/v1/load_lora_adapter": {"lora_name": "x", "lora_path": "/nowhere"},
    "/v1/completions": {"prompt": [[1]], "max_tokens": 1},
    "/coevo/completions": {"prompt": [[1]], "seeds": [1]},
    "//collective_rpc": {"method": "reload_weights"},
}


def status(url, body, headers):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status
    except HTTPError as error:
        return error.code


def test_without_its_key_a_server_does_nothing(engine):
    (replica,) = engine.replicas
    before = engine.generate(ASKED)
    wrong = ({}, {"Authorization": "Bearer x"}, {"Authorization": engine.key}, {"Host": "evil.example"})
    for headers in wrong:
        for path, body in ATTACKS.items():
            assert (path, headers, status(replica.url + path, body, headers)) == (path, headers, 401)
        for path in ("/metrics", "/docs", "/openapi.json", "/v1/models", "/server_info", "/is_sleeping"):
            assert (path, status(replica.url + path, None, headers)) == (path, 401)
    assert not is_sleeping(engine)
    assert tokens(engine.generate(ASKED)) == tokens(before)
    assert status(f"{replica.url}/health", None, {}) == 200
    guard = psutil.Process(replica.server.pid)
    told = [word for each in (guard, *guard.children(recursive=True)) for word in command_of(each)]
    assert engine.key not in " ".join(told) + replica.server.log.read_text()


def is_sleeping(engine):
    key = {"Authorization": f"Bearer {engine.key}"}
    request = urllib.request.Request(f"{engine.replicas[0].url}/is_sleeping", headers=key)
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)["is_sleeping"]


def test_a_sleeping_server_wakes_with_new_weights_or_for_a_prompt(engine, policies):
    """As far as a CPU goes: asleep nothing is computed, but no memory is freed (see benchmarks/gpu/gpu.py)."""
    first = engine.generate(ASKED)
    for level, name in ((1, "b"), (2, "a"), (2, "b")):
        engine.sleep(level)
        assert is_sleeping(engine)
        engine.load(policies / name)
        assert not is_sleeping(engine)
        assert gap(load(policies / name), engine.generate(ASKED)) < 1e-5
    engine.load(policies / "a")
    engine.sleep(2)
    assert tokens(engine.generate(ASKED)) == tokens(first)
    assert not is_sleeping(engine)


@pytest.mark.soak
def test_sleeping_adapters_wake_over_their_base(engines, policies):
    engine = engines["adapters"]
    engine.load(policies / "lora-a")
    engine.sleep(2)
    assert is_sleeping(engine)
    engine.load(policies / "lora-b")
    assert not is_sleeping(engine)
    assert gap(load(policies / "lora-b"), engine.generate(ASKED)) < 1e-5


def test_a_server_that_hangs_is_started_anew_and_asked_again(engine, policies):
    """Last of this module: it takes a start."""
    engine.load(policies / "b")
    before = engine.generate(ASKED)
    (replica,) = engine.replicas
    hung = psutil.Process(replica.server.pid).children(recursive=True)
    replica._client._timeout = 3.0
    for process in hung:
        process.suspend()
    assert tokens(engine.generate(ASKED)) == tokens(before)
    assert gap(load(policies / "b"), engine.generate(ASKED)) < 1e-5
    assert not psutil.wait_procs(hung, timeout=10)[1]
