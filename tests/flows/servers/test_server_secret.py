"""The secret of a workspace is its owner's alone, one for all processes, and not that of a copy."""

import shutil
import stat
import subprocess
import sys

import pytest

from coevo.flows.servers.server_secret import FORM, health_of, secret_of
from coevo.utilities.errors import CoevoError

MADE = (
    "import sys; from pathlib import Path; from coevo.flows.servers.server_secret import secret_of; "
    "print(secret_of(Path(sys.argv[1])))"
)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_processes_side_by_side_get_one_secret_that_nobody_else_can_read(tmp_path):
    directory = tmp_path / "new"
    made = [
        subprocess.Popen([sys.executable, "-c", MADE, directory], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    said = {process.communicate(timeout=60)[0].strip() for process in made}
    assert said == {secret_of(directory)} == {(directory / "prefect" / "secret").read_text()}
    assert [mode(path) for path in (directory, directory / "prefect", directory / "prefect" / "secret")] == [
        0o700,
        0o700,
        0o600,
    ]


def test_a_secret_that_others_can_read_is_refused_in_one_line(tmp_path):
    secret_of(tmp_path)
    (tmp_path / "prefect" / "secret").chmod(0o644)
    with pytest.raises(CoevoError, match=r"secret: others may know this secret \(mode 644, 600 is needed\): remove it"):
        secret_of(tmp_path)


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "prefect").mkdir()
    (tmp_path / "elsewhere").write_text(f"{'0' * 16}:{'0' * 64}")
    (tmp_path / "prefect" / "secret").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CoevoError, match="remove it"):
        secret_of(tmp_path)


@pytest.mark.parametrize("damage", [b"", b"short", b"\xff" * 81, b"a" * 300])
def test_a_damaged_one_is_replaced(tmp_path, damage):
    before = secret_of(tmp_path)
    (tmp_path / "prefect" / "secret").write_bytes(damage)
    assert FORM.fullmatch(secret_of(tmp_path))
    assert secret_of(tmp_path) != before


def test_a_copy_has_another(tmp_path):
    before = secret_of(tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "copy")
    copied = secret_of(tmp_path / "copy")
    assert copied.split(":")[1] != before.split(":")[1]
    assert health_of(copied) != health_of(before)
    assert secret_of(tmp_path / "first") == before
