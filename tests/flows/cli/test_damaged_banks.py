"""Every kind of file of a bank, damaged in every way: one line, nothing else lost, and copies are taken from elsewhere.

A case runs the commands that read the run before and after the damage. What they print is the same, or one line that
names the table; where the damaged file is not needed, it is the same.
"""

import json
import os
import signal

import pytest
from support import small_run
from support.damaged_banks import HARMS, KINDS, case, copy
from support.fsck import fingerprint, fsck
from support.kept import history
from support.remotes import advance, content

from coevo.lineage.publish_cursor import Cursor
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.table import RecordedTable
from coevo.utilities.errors import CoevoError

CASES = 9
SOAK = 100
LIMIT = 120
"""Seconds after which a command counts as hanging."""
READING = (
    ("bank", "show", "{}"),
    ("bank", "log", "{}"),
    ("bank", "search", "{}", "heat the mug", "--scope", "lotus"),
)
REVISIONS = ("first@0", "first@1", "first@2", "first")


@pytest.fixture(scope="module")
def places(tmp_path_factory, tracking_uri):
    """A workspace with ``first``, its branch ``twin`` from revision 2, and ``other``, and a remote that has ``first``.

    Nothing may change them.
    """
    from coevo.flows.cli.app import main

    root, remote = tmp_path_factory.mktemp("whole") / "workspace", tmp_path_factory.mktemp("away") / "remote"
    for name in ("first", "other"):
        paths = small_run.build(root, name, ["seed=4"] if name == "other" else [])
        Cursor(paths.published).advance(3)
    for line in (["branch", "first@2", "twin"], ["push", remote, "first"]):
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as stopped:
            patch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
            main([*map(str, line), "--workspace", str(root)])
        assert stopped.value.code == 0
    return root, remote


@pytest.fixture
def call(coevo):
    """Run a command that has to come to its end."""

    def stop(*_):
        pytest.fail(f"no end after {LIMIT} s")

    def run(*arguments, root):
        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(LIMIT)
        try:
            return coevo(*arguments, "--workspace", root)
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)

    return run


@pytest.fixture
def noise(tmp_path):
    """Text written to the file descriptor of standard error, past Python."""
    path, held = tmp_path / "stderr", os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    yield path
    os.dup2(held, 2)
    os.close(held)


@pytest.fixture(scope="module")
def printed():
    """Output of the commands on whole runs, by command; filled by the first case."""
    return {}


def test_the_cases_are_of_every_kind_and_harm():
    assert {number % len(KINDS) for number in range(CASES)} == set(range(len(KINDS)))
    assert {number % len(HARMS) for number in range(CASES)} == set(range(len(HARMS)))
    every = {(number % len(KINDS), number % len(HARMS)) for number in range(CASES, CASES + SOAK)}
    assert len(every) == len(KINDS) * len(HARMS)


MORE = (pytest.mark.soak, pytest.mark.timeout(0))


@pytest.mark.parametrize(
    "number",
    [pytest.param(number, marks=pytest.mark.full if number < CASES else MORE) for number in range(CASES + SOAK)],
)
def test_a_damaged_file(places, tmp_path, call, printed, noise, monkeypatch, tracking_uri, number):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    whole, remote = places
    if not printed:
        printed.update({line: call(*line, root=whole) for line in commands()})
    root = copy(whole, tmp_path / "workspace")
    bank = root / "runs/first/bank"
    found = case(number, bank)
    before = files_of(bank)
    found.apply(bank, number)

    lost = lost_versions(root)
    assert {table for table, _ in lost} <= {found.table}
    assert {version for _, version in lost} <= found.needed
    commands_say_the_same_or_name_it(call, printed, root, found, lost)
    named_by_fsck(root, found, lost)
    left = mended_from_the_branch(call, root, lost, found.copy_in(root / "runs/twin/bank") == before.get(found.path))
    if left:
        what_remains_can_be_used(call, root, tmp_path / "rolled back", left)
    mended_from_the_remote(call, root, remote)
    if lost:
        assert found.copy_in(bank) == before[found.path]
    for line in commands():
        assert call(*line, root=root) == printed[line]
    goes_on_equally(root, copy(whole, tmp_path / "never damaged"))
    assert "panicked" not in noise.read_text()


def commands():
    of_first = [tuple(part.format(name) for part in line) for line in READING for name in REVISIONS]
    return [*of_first, ("bank", "show", "other"), ("bank", "show", "twin"), ("log", "first")]


def files_of(bank):
    return {path.relative_to(bank).as_posix(): path.read_bytes() for path in bank.rglob("*") if path.is_file()}


def lost_versions(root):
    """Table versions that do not read as recorded, each tried alone."""
    lost, paths = set(), Workspace(root).existing("first")
    for manifest in history(root, "first"):
        for table, version in manifest.versions.items():
            try:
                RecordedTable(paths.bank, table, version, manifest.tables[table]).rows()
            except CoevoError as error:
                assert "\n" not in str(error)
                lost.add((table, version))
    return lost


def revisions_of(root, lost):
    return {m.revision for m in history(root, "first") if any((t, v) in lost for t, v in m.versions.items())}


def commands_say_the_same_or_name_it(call, printed, root, found, lost):
    gone = revisions_of(root, lost)
    for line in commands():
        said = call(*line, root=root)
        if said == printed[line]:
            continue
        revision = int(line[2].partition("@")[2] or 3) if line[2].startswith("first") else None
        assert line[0] == "bank"
        assert revision in gone or (line[1] == "log" and gone), (line, said)
        assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
        assert said.err.startswith(f"coevo: run 'first', revision {revision}: bank table {found.table}")


def named_by_fsck(root, found, lost):
    before = fingerprint(root)
    findings = of_bank(fsck(root, "first"))
    assert fingerprint(root) == before
    named = {part for part in lost if any(f"table {part[0]} version {part[1]} of" in f.problem for f in findings)}
    assert named == lost
    for finding in findings:
        assert "\n" not in finding.problem + finding.remedy
        assert f"bank table {found.table} " in finding.problem
        assert lost or "(latest) cannot be opened" in finding.problem
    return findings


def of_bank(findings):
    return [finding for finding in findings if "bank table" in finding.problem]


def mended_from_the_branch(call, root, lost, copied):
    """Repair with what is in the workspace, ``copied``: where there is another copy; the versions that stay lost."""
    problems = {f.problem: f.mendable for f in of_bank(fsck(root, "first"))}
    result = call("fsck", "first", "--repair", "--json", root=root)
    said = json.loads(result.out)
    left = [row for row in said["findings"] if "bank table" in row["problem"]]
    assert lost_versions(root) == (set() if copied else lost)
    assert {row["problem"] for row in left} == {problem for problem, mendable in problems.items() if not mendable}
    for row in left:
        assert row["remedy"].startswith("no other copy is here: ")
        assert "rollback first --to" in row["remedy"] or "coevo resume first" in row["remedy"]
    return lost_versions(root)


def what_remains_can_be_used(call, root, place, lost):
    """The last revision that is whole can be gone back to."""
    gone = revisions_of(root, lost)
    back = max({0, 1, 2, 3} - gone)
    copied = copy(root, place)
    result = call("rollback", "first", "--to", back, root=copied)
    assert result.code == 0, result.err
    head = history(copied, "first")[-1]
    assert head.tables == history(root, "first")[back].tables
    assert call("bank", "show", "first", "--json", root=copied).code == 0
    advance(copied, "lotus mug in safe 4")


def mended_from_the_remote(call, root, remote):
    result = call("fsck", "first", "--repair", "--from", remote, "--json", root=root)
    said = json.loads(result.out)
    assert [row for row in said["findings"] if "bank table" in row["problem"]] == []
    assert lost_versions(root) == set()


def goes_on_equally(root, whole):
    for place in (root, whole):
        advance(place, "lotus mug in safe 4")
    assert content(root)[0] == content(whole)[0]
