"""The author that a configuration names."""

import pytest
from support.authors import model, question
from support.completions import completions, said
from support.policies import qwen

from coevo.configs.bank.author_config import EndpointAuthorConfig, FrozenAuthorConfig, PolicyAuthorConfig
from coevo.configs.context_config import ContextConfig
from coevo.configs.rollout.engine_config import TransformersEngineConfig
from coevo.configs.rollout.rollout_config import SamplingConfig
from coevo.models.authors.open_author import author_of
from coevo.models.engines.transformers.embedded_engine import TransformersEngine
from coevo.models.policy.policy import save

CHAT = ContextConfig(style="chat")


def engine(policy):
    return TransformersEngine(policy, TransformersEngineConfig(), SamplingConfig(max_new_tokens=4))


def answer(config, policy, place, context=CHAT, seed=0):
    made = author_of(config, engine(policy), context, seed, place, pytest.fail)
    try:
        (reply,) = dict(made.replies([question()])).values()
    finally:
        made.close()
    assert not reply.fault
    return reply.text


def test_the_policy_answers_and_a_frozen_copy_answers_the_same_while_the_policy_changes(tmp_path):
    policy = model()
    save(policy, tmp_path / "copy")
    frozen = FrozenAuthorConfig(type="frozen", path=str(tmp_path / "copy"), max_new_tokens=12)
    own = PolicyAuthorConfig(max_new_tokens=12)
    assert answer(own, policy, tmp_path) == answer(frozen, policy, tmp_path)
    other = model(seed=1)
    assert answer(own, other, tmp_path) != answer(frozen, other, tmp_path)
    assert answer(own, policy, tmp_path) != answer(own, policy, tmp_path, seed=1)


def test_the_policy_answers_with_the_weights_of_its_last_update(tmp_path):
    save(model(seed=1), tmp_path)
    run = engine(model())
    made = author_of(PolicyAuthorConfig(max_new_tokens=12), run, CHAT, 0, tmp_path, pytest.fail)
    (before,) = dict(made.replies([question()])).values()
    run.load(tmp_path)
    (after,) = dict(made.replies([question()])).values()
    assert before.text != after.text == answer(PolicyAuthorConfig(max_new_tokens=12), model(seed=1), tmp_path)


def test_an_endpoint_answers_whatever_the_policy(tmp_path):
    with completions(lambda _: said("look first")) as (url, _):
        config = EndpointAuthorConfig(type="endpoint", url=url, model="m")
        assert answer(config, qwen(), tmp_path, ContextConfig()) == "look first"


def test_options_of_the_template_are_those_of_the_prompt(tmp_path):
    made = author_of(PolicyAuthorConfig(), engine(model(positions=4096)), CHAT, 0, tmp_path, pytest.fail)
    thinking = ContextConfig(style="chat", template={"enable_thinking": True})
    other = author_of(PolicyAuthorConfig(), engine(model(positions=4096)), thinking, 0, tmp_path, pytest.fail)
    assert "<think>\n\n</think>" in made._prompts.empty
    assert "<think>" not in other._prompts.empty
