import socket

import pytest

from coevo.configs.load.load import load_recipe
from coevo.tasks.run.assemble import check_engine
from coevo.utilities.errors import CoevoError

RECIPE, VLLM = "homerules-coevo-rl", "rollout.engine.type=vllm"


def test_the_embedded_engine_is_always_there(monkeypatch):
    monkeypatch.setattr(
        "coevo.models.engines.vllm.vllm_engine.check_there", lambda *_: pytest.fail("a server was looked for")
    )
    check_engine(load_recipe(RECIPE))


def test_without_vllm_the_remedy_is_named():
    config = load_recipe(RECIPE, [VLLM, "rollout.engine.python=nowhere/bin/python"])
    with pytest.raises(CoevoError, match=r"rollout\.engine\.python = 'nowhere/bin/python'.*make vllm-cpu"):
        check_engine(config)


def test_a_server_that_is_not_there_is_named():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(CoevoError, match=f"{url} does not answer"):
            check_engine(load_recipe(RECIPE, [VLLM, f"rollout.engine.urls=[{url}]"]))
