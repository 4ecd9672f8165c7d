"""The writer model that a configuration names."""

import pytest
from support.completions import completions, said
from support.policies import qwen
from support.writer_models import model, question

from coevo.configs.bank.writer_model_config import (
    EndpointWriterModelConfig,
    FrozenWriterModelConfig,
    PolicyWriterModelConfig,
)
from coevo.configs.context_config import ContextConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, TransformersEngineConfig
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.policy import save
from coevo.models.writer_models.engine_writer_model import writer_model_of

CHAT = ContextConfig(style="chat")


def engine(policy):
    return TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=4))


def answer(config, policy, directory, context=CHAT, seed=0):
    made = writer_model_of(config, engine(policy), context, seed, directory, pytest.fail)
    try:
        (reply,) = dict(made.replies([question()])).values()
    finally:
        made.close()
    assert not reply.fault
    return reply.text


def test_the_policy_answers_and_a_frozen_copy_answers_the_same_while_the_policy_changes(tmp_path):
    policy = model()
    save(policy, tmp_path / "copy")
    frozen = FrozenWriterModelConfig(type="frozen", path=str(tmp_path / "copy"), max_new_tokens=12)
    own = PolicyWriterModelConfig(max_new_tokens=12)
    assert answer(own, policy, tmp_path) == answer(frozen, policy, tmp_path)
    other = model(seed=1)
    assert answer(own, other, tmp_path) != answer(frozen, other, tmp_path)
    assert answer(own, policy, tmp_path) != answer(own, policy, tmp_path, seed=1)


def test_the_policy_answers_with_the_weights_of_its_last_update(tmp_path):
    save(model(seed=1), tmp_path)
    run = engine(model())
    made = writer_model_of(PolicyWriterModelConfig(max_new_tokens=12), run, CHAT, 0, tmp_path, pytest.fail)
    (before,) = dict(made.replies([question()])).values()
    run.load(tmp_path)
    (after,) = dict(made.replies([question()])).values()
    assert before.text != after.text == answer(PolicyWriterModelConfig(max_new_tokens=12), model(seed=1), tmp_path)


def test_an_endpoint_answers_whatever_the_policy(tmp_path):
    with completions(lambda _: said("look first")) as (url, _):
        config = EndpointWriterModelConfig(type="endpoint", url=url, model="m")
        assert answer(config, qwen(), tmp_path, ContextConfig()) == "look first"


def test_options_of_the_template_are_those_of_the_prompt(tmp_path):
    made = writer_model_of(PolicyWriterModelConfig(), engine(model(positions=4096)), CHAT, 0, tmp_path, pytest.fail)
    thinking = ContextConfig(style="chat", template={"enable_thinking": True})
    other = writer_model_of(
        PolicyWriterModelConfig(), engine(model(positions=4096)), thinking, 0, tmp_path, pytest.fail
    )
    assert "<think>\n\n</think>" in made._prompts.empty
    assert "<think>" not in other._prompts.empty
