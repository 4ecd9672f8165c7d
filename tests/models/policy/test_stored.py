"""Stored weights that do not fit their settings are refused before a value is read, in one line."""

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file
from support.policies import llama

from coevo.configs.policy_config import PretrainedPolicyConfig
from coevo.models.policy.policy import build, save
from coevo.models.policy.stored import INDEX, check_stored
from coevo.models.policy.tokenizers import tokenizer_of
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

WEIGHTS = "model.safetensors"


@pytest.fixture
def model(tmp_path):
    save(llama(), tmp_path / "model")
    return tmp_path / "model"


def refused(model, match):
    """The dry run and the run refuse it alike."""
    config = PretrainedPolicyConfig(type="pretrained", path=str(model))
    for read in (lambda: tokenizer_of(config, ()), lambda: build(config, (), key(0))):
        with pytest.raises(CoevoError, match=match) as error:
            read()
        assert "\n" not in str(error.value)


def change(model, **settings):
    file = model / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def split(model):
    """Two files and their index, as large models are stored."""
    tensors = load_file(model / WEIGHTS)
    (model / WEIGHTS).unlink()
    names = sorted(tensors)
    parts = {"a.safetensors": names[:3], "b.safetensors": names[3:]}
    for part, held in parts.items():
        save_file({name: tensors[name] for name in held}, model / part, {"format": "pt"})
    places = {name: part for part, held in parts.items() for name in held}
    (model / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": places}))


def test_a_model_fits_in_one_file_and_in_several(model):
    check_stored(str(model))
    split(model)
    check_stored(str(model))
    config = PretrainedPolicyConfig(type="pretrained", path=str(model))
    assert build(config, (), key(0)).model.config.vocab_size > 0


def test_a_file_that_was_cut_off(model):
    file = model / WEIGHTS
    file.write_bytes(file.read_bytes()[:-100])
    refused(model, r"model.safetensors: is damaged or incomplete \(.*\): download or copy it again")


def test_a_part_that_is_missing(model):
    split(model)
    (model / "b.safetensors").unlink()
    refused(model, f"b.safetensors is missing, which {INDEX} names: download the model again")


def test_another_width_is_named_with_the_first_tensors(model):
    change(model, intermediate_size=json.loads((model / "config.json").read_text())["intermediate_size"] + 8)
    refused(
        model, r"do not fit config.json \(model.layers.0.mlp.\w+.weight is \[.*\] instead of \[.*\]; .* and \d+ more\)"
    )


def test_a_layer_that_is_missing(model):
    change(model, num_hidden_layers=9)
    refused(model, r"model.layers.\d+.\S+ is missing; .*: take both from the same model")


@pytest.mark.parametrize(("text", "said"), [("{", "not readable"), ('{"weight_map": [1]}', "has no weight_map")])
def test_a_damaged_index(model, text, said):
    (model / INDEX).write_text(text)
    check_stored(str(model))  # the one file comes first
    split(model)
    (model / INDEX).write_text(text)
    with pytest.raises(CoevoError, match=f"{INDEX}: {said}"):
        check_stored(str(model))


def test_a_model_that_is_elsewhere_is_left_to_who_loads_it(tmp_path):
    check_stored(str(tmp_path / "absent"))
    assert not Path(tmp_path / "absent").exists()
