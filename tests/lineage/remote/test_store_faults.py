"""One line for whatever a remote's store raises."""

import pytest

from coevo.lineage.remote.local_remote import LocalStore
from coevo.lineage.remote.remote_store import one_line
from coevo.utilities.errors import CoevoError


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (PermissionError(13, "Permission denied", "/mnt/x"), "permission denied (.*/mnt/x.*): check who owns it"),
        (OSError(28, "No space left on device"), "No space left on device: fix that"),
        (ConnectionResetError("Connection\nreset by peer"), r"no answer \(Connection reset by peer\): check"),
        (FileNotFoundError("The specified bucket does not exist"), "no such bucket: create it"),
    ],
)
def test_a_fault_is_one_line_that_names_the_remote(tmp_path, fault, said):
    with pytest.raises(CoevoError, match=f"^remote {tmp_path}: .*{said}") as raised, one_line(LocalStore(tmp_path)):
        raise fault
    assert "\n" not in str(raised.value)


def test_a_line_already_said_stays(tmp_path):
    with pytest.raises(CoevoError, match=r"^as it is$"), one_line(LocalStore(tmp_path)):
        raise CoevoError("as it is")
