"""Machines that a hostfile names, and hostfiles that are refused."""

import pytest

from coevo.configs.update.update_config import hosts_of
from coevo.utilities.errors import CoevoError


def hosts(tmp_path, text):
    path = tmp_path / "hosts"
    path.write_text(text)
    return hosts_of(path)


def test_a_hostfile_names_machines_and_their_processes(tmp_path):
    found = hosts(tmp_path, "# ours\nnode-1 slots=4\n\nuser@10.0.0.2   slots=2 # old\n")
    assert list(found.items()) == [("node-1", 4), ("user@10.0.0.2", 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node-1\n", r"'node-1' is malformed or repeated; write NAME slots=N"),
        ("node-1 slots=0\n", "slots=0"),
        ("-oProxyCommand=evil slots=1\n", "write NAME slots=N"),
        ("node-1 slots=1\nnode-1 slots=2\n", "each name once"),
        ("# none\n", "it names no machine"),
    ],
)
def test_another_hostfile_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(CoevoError, match=message) as error:
        hosts(tmp_path, text)
    assert "\n" not in str(error.value)


def test_a_hostfile_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CoevoError, match=r"hostfile='.*nowhere' does not exist: name a file"):
        hosts_of(tmp_path / "nowhere")
