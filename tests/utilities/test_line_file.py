"""Lines are on the disk whole, or not at all."""

import errno
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.utilities import line_file
from coevo.utilities.line_file import append_line, drop_torn_line

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=40), max_size=6)
FULL = """
import resource, signal, sys
from pathlib import Path
from coevo.utilities.line_file import append_line
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
for number in range(100):
    append_line(Path(sys.argv[1]), f"{number} " + "x" * 20)
"""


@given(LINES, st.binary(max_size=30).filter(lambda torn: b"\n" not in torn), st.sampled_from([1, 7, 2**16]))
def test_a_torn_line_goes_and_the_others_stay(tmp_path_factory, lines, torn, block):
    path = tmp_path_factory.mktemp("lines") / "file.jsonl"
    for line in lines:
        append_line(path, line)
    whole = path.read_bytes() if lines else b""
    path.write_bytes(whole + torn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_file, "BLOCK_BYTES", block)
        drop_torn_line(path)
    assert path.read_bytes() == whole == "".join(f"{line}\n" for line in lines).encode()


def test_a_file_that_is_not_there_has_no_torn_line(tmp_path):
    drop_torn_line(tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("limit", range(90, 130, 5))
def test_without_room_the_file_keeps_its_whole_lines(tmp_path, limit):
    path = tmp_path / "file.jsonl"
    done = subprocess.run([sys.executable, "-c", FULL, path, str(limit)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert any(os.strerror(number) in done.stderr for number in (errno.EFBIG, errno.ENOSPC))
    text = path.read_text()
    assert text.endswith("\n") and len(text) <= limit < len(text) + 30
    assert [line.partition(" ")[0] for line in text.splitlines()] == [str(n) for n in range(text.count("\n"))]
