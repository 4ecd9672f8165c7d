"""Memory of a frozen writer model: that of its weights here, or of its servers."""

import pytest
from support.policies import qwen

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.models.capacity.devices import GIB, Device, Machine
from coevo.models.policy.policy import save
from coevo.tasks.preflight.forecast import forecast
from coevo.tasks.preflight.rehearse import glance
from coevo.tasks.preflight.writer_model_memory import writer_model_on_host

LAPTOP = Machine((), Device("cpu", 8 * GIB, 1e11, 2e10), 100 * GIB)
SERVER = Machine((Device("H100", 79 * GIB, 1e15, 3e12),), Device("cpu", 200 * GIB, 1e12, 2e10), 100 * GIB)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Directory of a model, and its number of parameters."""
    policy, directory = qwen(1), tmp_path_factory.mktemp("writer_model") / "model"
    save(policy, directory)
    return directory, sum(parameter.numel() for parameter in policy.model.parameters())


def frozen(path, **settings):
    given = "".join(f", {name}: {value}" for name, value in settings.items())
    writer_model = f"{{type: frozen, path: {path}{given}}}"
    return load_recipe("homerules-coevo-rl", [f"bank.writer={{type: model-contrast, model: {writer_model}}}"])


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_weights_in_the_process_of_the_run_count(model, dtype, size):
    path, count = model
    (item,) = writer_model_on_host(frozen(path, dtype=dtype), LAPTOP)
    assert (item.what, item.bytes) == ("the writer model: weights", size * count)
    config = frozen(path, dtype=dtype)
    host = forecast(config, glance(config, make(config.env)), LAPTOP).needs[-1]
    assert item in host.parts


def test_servers_on_a_cpu_hold_the_weights_and_those_on_a_gpu_do_not(model):
    path, count = model
    config = frozen(path, engine="{type: vllm, replicas: 2, cpu_memory: 3}")
    (item,) = writer_model_on_host(config, LAPTOP)
    assert item.bytes == 2 * (int(1.1 * 4 * count) + 3 * GIB + GIB)
    assert [each.bytes for each in writer_model_on_host(config, SERVER)] == [2 * GIB]
    assert writer_model_on_host(frozen(path, engine="{type: vllm, urls: ['http://a:1']}"), LAPTOP) == []


def test_an_writer_model_elsewhere_or_not_downloaded_yet_takes_nothing_here(tmp_path):
    assert writer_model_on_host(frozen(tmp_path / "none"), LAPTOP) == []
    assert writer_model_on_host(load_recipe("homerules-coevo-rl"), LAPTOP) == []
