"""A user's settings of DVC, git and Matplotlib do not reach coevo's own stores; Prefect's are named if refused."""

import os
import subprocess
import sys
from unittest.mock import Mock

import pytest
from pydantic import BaseModel, ValidationError, create_model, model_validator
from support.runs import ROOT
from support.soak import mostly_soak

DVC = {
    "malformed": "[core\n]]] = \x00",
    "a value of another type": "[core]\n    checksum_jobs = many\n",
    "an unknown section": "[nonsense]\n    a = 1\n",
    "another cache": "[cache]\n    dir = /nowhere/else\n    type = symlink\n    protected = true\n",
    "a remote that is asked first": '[core]\n    remote = theirs\n[remote "theirs"]\n    url = s3://nobody\n',
    "a lock that the disk has not": "[core]\n    hardlink_lock = true\n    site_cache_dir = /proc/nowhere\n",
}


@pytest.mark.parametrize("text", DVC.values(), ids=DVC)
def test_the_users_settings_of_dvc_change_nothing(coevo, copied, tmp_path, monkeypatch, text):
    (tmp_path / "home" / "dvc").mkdir(parents=True)
    (tmp_path / "home" / "dvc" / "config").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_DIRS", str(tmp_path / "home"))
    result = coevo("rollback", "first", "--to", 1)
    assert (result.code, result.err) == (0, "")
    weights = copied / "runs/first/lineage/policy/weights"
    assert weights.read_text() == "policy of 1"
    assert not weights.is_symlink()


def test_nor_do_its_variables(coevo, copied, tmp_path, monkeypatch):
    (tmp_path / "config").write_text(DVC["malformed"])
    for name in ("DVC_GLOBAL_CONFIG_DIR", "DVC_SYSTEM_CONFIG_DIR", "DVC_ROOT"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("DVC_SITE_CACHE_DIR", "/proc/nowhere")
    result = coevo("rollback", "first", "--to", 1)
    assert (result.code, result.err) == (0, "")


UNREAD = {
    "PREFECT_API_URL": "http://[::1",
    "PREFECT_LOGGING_LEVEL": "loud",
    "PREFECT_API_REQUEST_TIMEOUT": "soon",
    "PREFECT_CLIENT_RETRY_JITTER_FACTOR": "x",
    "PREFECT_SERVER_API_PORT": "x",
    "PREFECT_RESULTS_PERSIST_BY_DEFAULT": "perhaps",
    "PREFECT_TASKS_DEFAULT_RETRIES": "-1.5",
    "PREFECT_SERVER_DATABASE_TIMEOUT": "never",
}
"""Variables with values that Prefect cannot read: it raises while it is imported."""


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", mostly_soak(list(UNREAD), "PREFECT_API_URL", "PREFECT_API_REQUEST_TIMEOUT"))
def test_a_variable_that_prefect_cannot_read_is_one_line_that_names_it(small_workspace, name):
    line = [sys.executable, "-c", "from coevo.flows.start import main; main()", "approve", "--list", "--workspace"]
    environment = os.environ | {name: UNREAD[name], "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*line, small_workspace], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
    # Before it, Prefect says that it has initialized no plugins.
    assert done.stderr.splitlines()[-1].startswith(f"coevo: Prefect cannot read {name} (")


def refused(field, settings="APISettings"):
    """Error of pydantic for a field of some settings, or for the whole of them."""
    made = create_model(settings, **({field: (int, ...)} if field else {"__base__": Whole}))
    with pytest.raises(ValidationError) as caught:
        made(**({field: "x"} if field else {"a": 1}))
    return caught.value


class Whole(BaseModel):
    a: int

    @model_validator(mode="after")
    def _whole(self):
        raise ValueError("Invalid IPv6 URL")


@pytest.mark.parametrize(
    ("variable", "error", "said"),
    [
        ("PREFECT_API_REQUEST_TIMEOUT", ("request_timeout",), "Prefect cannot read PREFECT_API_REQUEST_TIMEOUT (Input"),
        ("PREFECT_API_URL", ("", "Settings"), "Prefect cannot read PREFECT_API_URL (Value error, Invalid IPv6 URL)"),
        ("OTHER_PORT", ("port", "ServerAPISettings"), "Prefect cannot read its profile (Input"),
    ],
)
def test_the_variable_is_that_of_the_setting(coevo, monkeypatch, variable, error, said):
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "x")
    raised = refused(*error)
    monkeypatch.setattr("coevo.flows.cli.inspect.workspace_at", Mock(side_effect=raised))
    done = coevo("runs")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert done.err.startswith(f"coevo: {said}")
    assert done.err.endswith(": correct it\n")


def test_what_another_program_validates_stays_an_error(coevo, monkeypatch):
    # Tests that ran before may have loaded a part from this folder, whose errors are told in one line.
    monkeypatch.setattr("coevo.utilities.part_registry._OUTSIDE", set())
    monkeypatch.setattr("coevo.flows.cli.inspect.workspace_at", Mock(side_effect=refused("a", "Row")))
    with pytest.raises(ValidationError):
        coevo("runs")
