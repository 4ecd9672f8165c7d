"""A disk that fills up anywhere in the protocol, or takes nothing at all; a clock that is set back in the middle."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import fault_at
from support.disk import BALLAST, SmallDisk
from support.lineage_driver import lineage_in, play, run_in, states

pytestmark = pytest.mark.full
REVISIONS = 5
POINTS = (
    "coevo.lineage.repository:_lay_out@1",
    "support.lineage_driver:stage@1",
    "support.lineage_driver:Shelf.write@1",
    "shutil:move@1",
    "coevo.lineage.objects.artifacts:Artifacts.add@1",
    "coevo.lineage.lineage:write_manifest@1",
    "coevo.lineage.repository:Repository.commit@1",
    "coevo.lineage.repository:Repository.tag@1",
    "coevo.lineage.publish_cursor:Cursor.advance@1",
)
TESTS = (Path(fault_at.__file__).parents[1], Path(fault_at.__file__).parents[2])
READ = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from support.lineage_driver import lineage_in, states
policy = lineage_in(sys.argv[3]).artifacts.materialise(2, "policy", Path(sys.argv[4]))
print(len(states(sys.argv[3])), sorted(path.name for path in policy.iterdir()))
"""
HARNESS = (sys.executable, fault_at.__file__)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    directory = tmp_path_factory.mktemp("untouched")
    play(directory, REVISIONS)
    return states(directory)


@pytest.fixture
def disk(directory):
    with SmallDisk(directory, "8m") as disk:
        yield disk


def drive(disk, *fault):
    command = disk.inside(*HARNESS, *fault, "--", "driver", disk.directory, str(REVISIONS))
    return subprocess.run(command, capture_output=True, text=True, check=False)


def copied(disk, into):
    """The run as it is on the disk; git works only where paths are what they seem."""
    return shutil.copytree(disk.outside, into, ignore=shutil.ignore_patterns(BALLAST))


def test_a_run_survives_a_full_disk_anywhere(disk, untouched, tmp_path):
    for point in POINTS:
        done = drive(disk, f"full:{disk.directory}", point)
        assert done.returncode == 1, f"{point}: not reached"
        assert (done.stderr.count("\n"), "room" in done.stderr) == (1, True), done.stderr
        disk.make_room()
    disk.fill()
    said = drive(disk, "clock:0", "os:fsync@1").stderr
    assert re.fullmatch(r".*(No space left on device|Out of diskspace).*: .*room.*\n", said)
    disk.make_room()
    play(copied(disk, tmp_path / "copy"), REVISIONS)
    assert states(tmp_path / "copy") == untouched


def test_where_nothing_may_be_written_a_run_stops_in_one_line_and_can_be_read(disk, untouched, tmp_path):
    assert drive(disk, "clock:0", "coevo.lineage.lineage:write_manifest@1").returncode == 0
    disk.remount("ro")
    done = drive(disk, "clock:0", "coevo.lineage.lineage:write_manifest@1")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "Read-only file system: make it writable" in done.stderr
    reading = disk.inside(sys.executable, "-c", READ, *TESTS, disk.directory, tmp_path / "out")
    read = subprocess.run(reading, capture_output=True, text=True, check=False)
    assert (read.stdout, read.stderr) == (f"{REVISIONS} ['größe', 'weights.bin']\n", "")
    disk.remount("rw")
    assert drive(disk, "clock:0", "coevo.lineage.lineage:write_manifest@1").returncode == 0
    assert states(copied(disk, tmp_path / "copy")) == untouched


def test_a_clock_that_is_set_back_changes_no_state_and_no_order(directory, untouched):
    command = [
        *HARNESS,
        "clock:-86400",
        "coevo.lineage.lineage:Lineage.commit@3",
        "--",
        "driver",
        directory,
        str(REVISIONS),
    ]
    assert subprocess.run(command, check=False).returncode == 0
    play(directory, REVISIONS)
    assert states(directory) == untouched
    times = [manifest.observed["timestamp"] for manifest in lineage_in(directory).history.log()]
    assert times[2] < times[1] < times[3] + 86_400_000
    assert '"published": 4' in run_in(directory).published.read_text()
