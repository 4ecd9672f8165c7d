"""A step that takes long is named with its place, and a quick one says nothing."""

import re
import time

import pytest

from coevo.flows.console.patience import patience


def hang(until):
    while time.monotonic() < until:
        time.sleep(0.01)


def test_a_long_step_is_named_with_file_line_and_function_again_and_again(capsys):
    with patience("the check", 0.1):
        hang(time.monotonic() + 1.0)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"the check has taken 0.1 s, and is at {__file__}, line \d+, in hang; Ctrl-C ends it", first)
    assert second.startswith("the check has taken 0.2 s")


def test_a_quick_step_says_nothing(capsys):
    with patience("the check", 5.0):
        pass
    assert capsys.readouterr().err == ""


def test_nothing_is_said_after_an_error(capsys):
    with pytest.raises(ZeroDivisionError), patience("the check", 0.05):
        _ = 1 / 0
    time.sleep(0.1)
    assert capsys.readouterr().err == ""


def test_the_insides_of_a_library_are_left_out(tmp_path, monkeypatch, capsys):
    (tmp_path / "library_that_waits.py").write_text("import time\n\ndef wait():\n    time.sleep(0.5)\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("coevo.flows.console.patience.sysconfig.get_path", lambda name: str(tmp_path))
    from library_that_waits import wait

    with patience("the check", 0.2):
        wait()
    said = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(rf"the check has taken 0.2 s, and is at {__file__}, line \d+, in test_.*; Ctrl-C ends it", said)


def test_the_insides_of_a_package_that_adds_an_environment_are_not(tmp_path, monkeypatch, capsys):
    (tmp_path / "plug_in_that_waits.py").write_text("import time\n\ndef wait():\n    time.sleep(0.5)\n")
    about = tmp_path / "plug_in-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-in\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[coevo.envs]\nplug = plug_in_that_waits:Env\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("coevo.flows.console.patience.sysconfig.get_path", lambda name: str(tmp_path))
    from plug_in_that_waits import wait

    with patience("the check", 0.2):
        wait()
    directory = re.escape(f"{tmp_path / 'plug_in_that_waits.py'}, line 4, in wait")
    assert re.match(f"the check has taken 0.2 s, and is at {directory}; ", capsys.readouterr().err)


def test_code_of_coevo_is_left_out(capsys):
    from coevo.utilities.processes import wait

    script = "from coevo.flows.console.patience import patience\nfrom coevo.utilities.processes import wait\n"
    assert wait is not None
    namespace = {"__name__": "__main__"}
    exec(compile(f"{script}with patience('the check', 0.1):\n    wait(lambda: False, 0.4)", "coevo", "exec"), namespace)
    assert capsys.readouterr().err.splitlines()[0].startswith("the check has taken 0.1 s")
