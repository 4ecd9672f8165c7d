"""Models from elsewhere run nothing: no code of their own, no pickles, no template beyond its sandbox."""

import json
import pickle
import sys
from unittest.mock import Mock

import pytest
from support.chat import chat
from support.policies import llama, qwen

from coevo.configs.context_config import ContextConfig
from coevo.configs.load.load import load_recipe
from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.models.capacity.model_shape import config_of, shape_of
from coevo.models.policy import bounded_trial, template
from coevo.models.policy.context import Context
from coevo.models.policy.policy import build, bundle, load, save
from coevo.models.policy.tokenizers import Guess, tokenizer_of
from coevo.records.demonstration import Moment
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

MOMENT = Moment("find the mug", (), (), "at hall")


@pytest.fixture
def model(tmp_path):
    """A model in Hugging Face format."""
    save(llama(), tmp_path / "model")
    return tmp_path / "model"


def config(model, **settings):
    return PretrainedPolicyConfig(type="pretrained", path=str(model), **settings)


def change(file, **settings):
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def loads(model):
    """Every way in which a model is read."""
    return (
        lambda: build(config(model), (), key(0)),
        lambda: load(model),
        lambda: config_of(str(model)),
        lambda: tokenizer_of(config(model), ()),
    )


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
def test_code_of_its_own_is_refused_without_a_question(model, file, known, monkeypatch):
    mark = model.parent / "mark"
    (model / "evil.py").write_text(f"open({str(mark)!r}, 'w')\n")
    names = {"AutoConfig": "evil.A", "AutoModelForCausalLM": "evil.A", "AutoTokenizer": ["evil.A", "evil.A"]}
    change(model / file, auto_map=names)
    if not known:
        change(model / "config.json", model_type="evil")
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    for read in loads(model):
        with pytest.raises(CoevoError, match=rf"needs code of its own \({file}: auto_map\)"):
            read()
    recipe = load_recipe("homerules-grpo", [f"policy={{type: pretrained, path: {model}}}", "warmstart=null"])
    with pytest.raises(CoevoError, match="needs code of its own"):  # of a dry run
        tokenizer_of(recipe.policy, ())
    assert not mark.exists()


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"attn_implementation": "evil/kernel"}, "attn_implementation"),
        ({"_attn_implementation": "evil/kernel@main:forward"}, "_attn_implementation"),
        ({"text_config": {"_attn_implementation": {"": "paged|evil/kernel"}}}, "_attn_implementation"),
    ],
)
def test_a_kernel_of_the_hub_is_refused(model, settings, named):
    change(model / "config.json", **settings)
    for read in loads(model):
        with pytest.raises(CoevoError, match=rf"needs code of its own \(config\.json: {named}\)"):
            read()


def test_attention_of_transformers_own_is_no_kernel(model):
    change(model / "config.json", _attn_implementation="sdpa")
    for read in loads(model):
        read()


@pytest.mark.parametrize(
    ("file", "settings", "said"),
    [
        ("config.json", {"num_attention_heads": "four"}, "num_attention_heads"),
        ("config.json", {"num_attention_heads": 0}, "ZeroDivisionError"),
        ("config.json", {"hidden_size": 32.5}, "hidden_size"),
        ("config.json", {"hidden_size": 10**30}, "empty"),
        ("config.json", {"model_type": [3]}, "unhashable"),
        ("config.json", {"model_type": "clip"}, "CLIPConfig"),
        ("config.json", {"text_config": 3}, "to_dict"),
        ("config.json", {"dtype": "evil"}, "evil"),
        ("tokenizer_config.json", {"tokenizer_class": 3}, "removesuffix"),
        ("tokenizer_config.json", {"eos_token": 3}, "eos_token"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"x": 3}}, "added_tokens_decoder"),
        ("tokenizer.json", {"added_tokens": None}, "added_tokens|NoneType"),
        ("tokenizer.json", {"model": {"type": "Evil"}}, "ModelUntagged"),
    ],
)
def test_a_malformed_model_is_named_with_file_and_field(model, file, settings, said):
    change(model / file, **settings)
    reads = {"config.json": lambda: shape_of(config(model), 0)}
    with pytest.raises(CoevoError, match=said) as stopped:
        reads.get(file, lambda: tokenizer_of(config(model), ()))()
    assert file in str(stopped.value)
    assert str(model) in str(stopped.value)
    assert str(stopped.value).isprintable()


def test_a_tokenizer_that_is_no_json_is_not_guessed(model):
    (model / "tokenizer.json").write_text("[")
    with pytest.raises(CoevoError, match=r"tokenizer\.json .*cannot be read"):
        tokenizer_of(config(model), ())


def test_pickled_weights_are_refused_unread(model):
    class Bomb:
        def __reduce__(self):
            return open, (str(model.parent / "mark"), "w")

    (model / "model.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Bomb()))
    whole, again, _, tokenizer = loads(model)
    for read in (whole, again, tokenizer):
        with pytest.raises(CoevoError, match=r"pytorch_model\.bin is a pickle, which can run code"):
            read()
    assert not (model.parent / "mark").exists()


def test_adapters_within_a_base_model_are_refused(model):
    """Transformers would load them with it."""
    (model / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "megatron_core": "megatron.evil"}))
    for read in (loads(model)[0], loads(model)[3]):
        with pytest.raises(CoevoError, match="holds adapters"):
            read()


def test_weights_without_a_tokenizer_are_refused_and_settings_alone_are_not(model):
    (model / "tokenizer.json").unlink()
    with pytest.raises(CoevoError, match=r"no tokenizer\.json: copy the model's own to it"):
        tokenizer_of(config(model), ())
    for file in model.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(CoevoError, match=r"no tokenizer\.json: copy the model's own to it"):
        tokenizer_of(config(model), ())
    (model / "model.safetensors").unlink()
    assert isinstance(tokenizer_of(config(model), ()), Guess)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"megatron_config": {"a": 1}, "megatron_core": "evil_core"}, "megatron_config names code to import"),
        ({"auto_mapping": {"parent_library": "evil_core"}}, "auto_mapping names code to import"),
        ({"peft_type": "XLORA"}, "peft_type='XLORA' is not LORA"),
    ],
)
def test_adapters_that_name_modules_are_refused(model, tmp_path, settings, said, monkeypatch):
    (tmp_path / "evil_core.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    save(build(config(model, lora=LoraConfig(r=2)), (), key(0)), tmp_path / "adapters")
    change(tmp_path / "adapters" / "adapter_config.json", **settings)
    for read in (lambda: load(tmp_path / "adapters"), lambda: bundle(tmp_path / "adapters", tmp_path / "bundle")):
        with pytest.raises(CoevoError, match=said):
            read()
    assert "evil_core" not in sys.modules


RECURSION = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ cycler.__init__.__globals__.os.system('true') }}",
        "{{ messages.append(1) }}",
        "{% for i in range(10**9) %}{% endfor %}",
        "{{ nothing.at.all }}",
        "{{ raise_exception('no system\\nmessage') }}",
        "{% if %}",
        "{{ 1 / 0 }}",
        RECURSION,
    ],
)
def test_a_template_stays_in_its_sandbox_and_fails_in_one_line(source, monkeypatch):
    if source != RECURSION:  # the trial, which ignores the errors of a template, takes a second
        monkeypatch.setattr(template, "try_out", lambda *_: None)
    refused(source)


def refused(source, said=""):
    tokenizer = chat()
    tokenizer.chat_template = source
    with pytest.raises(CoevoError, match=f"chat template cannot be used: {said}") as stopped:
        Context(ContextConfig(style="chat"), tokenizer).prompt(MOMENT)
    assert str(stopped.value).isprintable()


LOOP = "{% for i in range(4000) %}{% for i in range(4000) %}{% endfor %}{% endfor %}"
"""A second of work, which ends, so that later tests have the machine."""
LATER = "{{% if messages[-1].content != 'hello' %}}{}{{% endif %}}"
"""Nothing for the message of the trial."""


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (LATER.format(LOOP), "does not end within 0.1 s"),
        ("{{ 'a' * 5000000 }}", "writes 5000000 characters"),
        # One operation, which nothing in this process could stop.
        ("{{ 7 ** (7 ** 9) }}", "does not end within 0.1 s"),
        ("{% set long = 'a' * (2 ** 31) %}", "needs more than"),
    ],
)
def test_a_template_without_end_or_measure_is_given_up(source, said, monkeypatch):
    if "0.1 s" in said:
        monkeypatch.setattr(template, "RENDER_TIMEOUT_S", 0.1)
    refused(source, said)


def test_an_honest_template_is_rendered_as_before_tried_out_once_and_one_of_ours_never(monkeypatch):
    started = Mock(wraps=bounded_trial.subprocess.run)
    monkeypatch.setattr(bounded_trial.subprocess, "run", started)
    messages, strange = [{"role": "user", "content": "hello"}], chat()
    strange.chat_template += " "
    for tokenizer in (strange, strange, qwen().tokenizer):
        said = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        assert template.render(tokenizer, messages) == said
    template.render(Guess(), messages)
    assert started.call_count == 1
