"""A frozen writer model: loaded at the first question, and freed by ``close``."""

import shutil

import pytest
import torch
from support.writer_models import model, question

from coevo.configs.bank.writer_model_config import FrozenWriterModelConfig
from coevo.configs.rollout.rollout_config import TransformersEngineConfig, VllmEngineConfig
from coevo.models.policy.policy import save
from coevo.models.writer_models.engine_writer_model import FrozenWriterModel
from coevo.utilities.errors import CoevoError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    directory = tmp_path_factory.mktemp("models") / "frozen"
    save(model(seed=1), directory)
    return directory


def writer_model(path, directory, **settings):
    config = FrozenWriterModelConfig(type="frozen", path=str(path), max_new_tokens=8, **settings)
    return FrozenWriterModel(config, {"enable_thinking": False}, 0, directory)


def test_a_model_answers_with_its_own_weights_in_each_session(folder, tmp_path):
    asked = [question("why?"), question("how?")]
    made = writer_model(folder, tmp_path)
    first = sorted(made.replies(asked), key=lambda pair: pair[0])
    assert [directory for directory, reply in first if reply.text and not reply.fault] == [0, 1]
    assert dict(made.replies(asked[1:]))[0] == first[1][1]
    made.close()
    assert dict(writer_model(folder, tmp_path).replies(asked)) == dict(first)


def test_nothing_is_loaded_before_the_first_question_or_after_close(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    made = writer_model(copy, tmp_path)
    assert list(made.replies([])) == [] and made._engine is None
    list(made.replies([question()]))
    assert made._engine is not None
    made.close()
    made.close()
    assert made._engine is None
    shutil.rmtree(copy)
    with pytest.raises(CoevoError, match="cannot be read"):
        list(made.replies([question()]))


def test_the_threads_of_the_run_stay(folder, tmp_path):
    before = torch.get_num_threads()
    list(writer_model(folder, tmp_path, engine=TransformersEngineConfig(threads=before + 1)).replies([question()]))
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_have_the_chosen_precision(dtype, tmp_path):
    policy = model(seed=1)
    policy.model.to(torch.bfloat16)
    save(policy, tmp_path / "model")
    made = writer_model(tmp_path / "model", tmp_path, dtype=dtype)
    assert dict(made.replies([question()]))[0].text
    assert made._engine.policy.model.dtype == getattr(torch, dtype)


def test_a_model_that_is_not_there_and_servers_that_cannot_be_started_are_one_line_at_once(folder, tmp_path):
    with pytest.raises(CoevoError, match=r"^bank\.writer\.model\.path = '.*absent' cannot be read, it is not on this"):
        writer_model(tmp_path / "absent", tmp_path)
    engine = VllmEngineConfig(type="vllm", python=str(tmp_path / "no-python"))
    with pytest.raises(CoevoError, match=r"^bank\.writer\.model\.engine\.python = .* no such interpreter"):
        writer_model(folder, tmp_path, engine=engine)


def test_a_model_without_a_template_is_one_line(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / "chat_template.jinja").unlink()
    with pytest.raises(CoevoError, match=r"^bank\.writer\.model\.path = .* has no chat template"):
        list(writer_model(copy, tmp_path).replies([question()]))


def test_servers_get_weights_in_one_file(folder, tmp_path):
    """A large model comes in parts."""
    parts = tmp_path / "parts"
    policy = model(seed=1)
    policy.model.save_pretrained(parts, max_shard_size="50KB")
    policy.tokenizer.save_pretrained(parts)
    assert len(list(parts.glob("*.safetensors"))) > 1
    assert writer_model(folder, tmp_path)._in_one_file() == folder
    whole = writer_model(parts, tmp_path / "place")._in_one_file()
    assert whole == writer_model(parts, tmp_path / "place")._in_one_file()
    assert [path.name for path in whole.glob("*.safetensors")] == ["model.safetensors"]
    asked = [question()]
    assert dict(writer_model(whole, tmp_path).replies(asked)) == dict(writer_model(folder, tmp_path).replies(asked))
