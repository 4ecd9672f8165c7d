"""Names of revisions, and which of them are kept whole."""

import subprocess

import pytest
from support.lineage_driver import Shelf, lineage_in, play

from coevo.utilities.errors import CoevoError


def refs(run):
    listed = ["git", "for-each-ref", "--format=%(refname) %(objectname)", "refs/tags", "refs/dropped"]
    done = subprocess.run(listed, cwd=run.lineage, capture_output=True, text=True, check=True)
    return dict(line.split() for line in done.stdout.splitlines())


def test_every_revision_is_kept_until_it_is_dropped_and_its_history_stays(directory, run):
    lineage = lineage_in(directory)
    assert lineage.history.retained() == [0, 1, 2, 3]
    before = lineage.history.log(), lineage.history.commits()
    lineage.tags.drop([1, 2], lineage.history.commits())
    assert lineage.history.retained() == [0, 3]
    assert set(refs(run)) == {"refs/tags/r0", "refs/dropped/r1", "refs/dropped/r2", "refs/tags/r3"}
    assert refs(run)["refs/dropped/r1"] == lineage.history.commit_hash(1)
    assert (lineage.history.log(), lineage.history.commits()) == before
    assert lineage.history.manifest(1).revision == 1


def test_recovery_does_not_bring_a_dropped_revision_back(directory, run):
    with lineage_in(directory) as lineage:
        lineage.tags.drop([1, 2], lineage.history.commits())
        assert not lineage.recover(Shelf(run.bank))
        assert lineage.history.retained() == [0, 3]
    play(directory, 6)
    assert lineage_in(directory).history.retained() == [0, 3, 4, 5]


def test_recovery_completes_a_drop_that_left_both_tags(directory, run):
    commit = lineage_in(directory).history.commit_hash(1)
    subprocess.run(["git", "update-ref", "refs/dropped/r1", commit], cwd=run.lineage, check=True)
    assert lineage_in(directory).history.retained() == [0, 2, 3]
    with lineage_in(directory) as lineage:
        assert lineage.recover(Shelf(run.bank)).tags == ("r1",)
    assert "refs/tags/r1" not in refs(run)


def test_recovery_puts_the_mark_of_a_dropped_revision_back(directory, run):
    lineage = lineage_in(directory)
    lineage.tags.drop([1, 2], lineage.history.commits())
    subprocess.run(["git", "update-ref", "refs/dropped/r1", "refs/tags/r0"], cwd=run.lineage, check=True)
    with lineage:
        assert lineage.recover(Shelf(run.bank)).tags == ("r1",)
    assert refs(run)["refs/dropped/r1"] == lineage.history.commit_hash(1)
    assert lineage.history.retained() == [0, 3]


def test_a_dropped_revision_is_refused_in_one_line(directory, run):
    lineage = lineage_in(directory)
    lineage.tags.drop([1], lineage.history.commits())
    said = "revision 1 of run 'first' was dropped by gc: kept ones are 0, 2, 3"
    for refused in (
        lambda: lineage.artifacts.materialise(1, "policy", directory / "out"),
        lambda: lineage.rollback(1, Shelf(run.bank)),
        lambda: lineage.tags.add("best", lineage.history.require(1)),
    ):
        with pytest.raises(CoevoError) as caught:
            refused()
        assert str(caught.value) == said
    assert not (directory / "out").exists()
    assert lineage.history.head().revision == 3


def test_a_tag_names_a_revision_until_it_is_taken_away(directory, run):
    lineage = lineage_in(directory)
    lineage.tags.add("best-so_far.1", lineage.history.require(2))
    with pytest.raises(CoevoError, match=r"tag 'best-so_far\.1' is taken"):
        lineage.tags.add("best-so_far.1", lineage.history.require(1))
    assert lineage.history.names() == {"best-so_far.1": 2}
    with lineage:
        assert not lineage.recover(Shelf(run.bank))
    lineage.tags.delete("best-so_far.1")
    assert lineage.history.names() == {}
    with pytest.raises(CoevoError, match=r"tag 'best-so_far\.1' is not in .*: it has none"):
        lineage.tags.delete("best-so_far.1")


def test_a_tag_with_a_message_counts_as_well(directory, run):
    person = ("-c", "user.name=one", "-c", "user.email=one@localhost")
    subprocess.run(["git", *person, "tag", "-a", "-m", "best", "best", "r2"], cwd=run.lineage, check=True)
    lineage = lineage_in(directory)
    assert lineage.history.names() == {"best": 2}
    lineage.tags.delete("best")
    assert lineage.history.names() == {}


@pytest.mark.parametrize("name", ["r3", "", "a b", "-x", "a..b", "x.lock", "x.", "a/b", "ä", "x" * 101, "@", "a\n"])
def test_a_malformed_tag_is_refused_in_one_line(played, name):
    lineage = lineage_in(played)
    with pytest.raises(CoevoError, match="cannot be a tag") as caught:
        lineage.tags.add(name, lineage.history.require(1))
    assert "\n" not in str(caught.value)
