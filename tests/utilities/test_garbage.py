import gc

import pytest

from coevo.flows.cli.app import main


@pytest.fixture(autouse=True)
def threshold():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_a_command_collects_seldom(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    assert gc.get_threshold() == (50_000, 20, 20)
    assert "Train an LLM agent" in capsys.readouterr().out
