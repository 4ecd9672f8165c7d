"""The retention list: what is kept, and why."""

from types import SimpleNamespace

import pytest

from coevo.lineage.revision.retention import NO_RULE, RetentionRule, RunRetention, ranges, reasons, trail_since

EVERYTHING_MAY_GO = RetentionRule(last=0)


def history(count=10, fired=None, restored=None, bank=()):
    """Revisions of a run whose writer fires in each, but for what is said of the last one."""
    restored = restored or {}
    made = [
        SimpleNamespace(
            revision=number,
            parent=number - 1 if number else None,
            restored_from=restored.get(number),
            state={"fired": number, "config": {"bank": bank}},
        )
        for number in range(count)
    ]
    made[-1].state["fired"] = count - 1 if fired is None else fired
    return made


def kept(revisions, rule=EVERYTHING_MAY_GO, names=(), published=None, retained=None):
    published = len(revisions) - 1 if published is None else published
    retained = range(len(revisions)) if retained is None else retained
    return {
        n: why for n, why in reasons(RunRetention(revisions, retained, dict(names), published), rule).items() if why
    }


def test_the_start_and_the_head_are_always_kept():
    assert kept(history()) == {0: ["reference policy"], 9: ["last revision"]}


def test_the_rules_add_up():
    assert list(kept(history(), RetentionRule(last=3, every=4))) == [0, 4, 7, 8, 9]
    assert kept(history(), RetentionRule(last=3, every=4))[8] == ["last 3", "every 4"]


def test_without_a_rule_nothing_goes():
    found = kept(history(), RetentionRule())
    assert list(found) == list(range(10))
    assert (found[0], found[5]) == (["reference policy"], [NO_RULE])


def test_a_tag_keeps_its_revision():
    assert kept(history(), names={"best": 4, "good": 4})[4] == ["tag best", "tag good"]


def test_what_is_not_published_is_kept():
    assert list(kept(history(), published=6)) == [0, 7, 8, 9]
    assert len(kept(history(), published=-1)) == 10


def test_episodes_that_the_writer_has_yet_to_see_are_kept():
    assert list(kept(history(fired=6))) == [0, 7, 8, 9]


def test_after_a_rollback_those_on_the_way_to_the_head_are():
    assert list(kept(history(fired=2, restored={9: 4}))) == [0, 3, 4, 9]


def test_a_run_without_a_bank_has_no_writer_that_waits():
    assert list(kept(history(fired=0, bank=None))) == [0, 9]


def test_what_was_dropped_before_is_in_no_list():
    assert list(kept(history(), RetentionRule(every=2), retained=[0, 3, 6, 9])) == [0, 6, 9]


def test_a_run_without_revisions_keeps_nothing():
    assert reasons(RunRetention([], [], {}, -1), RetentionRule(last=1)) == {}


def test_the_trail_follows_a_rollback_to_what_it_restored():
    revisions = history(8, restored={5: 2})
    assert trail_since(revisions.__getitem__, revisions[7], 0) == [1, 2, 6, 7]


@pytest.mark.parametrize(
    ("revisions", "shown"),
    [([], "none"), ([3], "3"), ([0, 1], "0, 1"), ([0, 4, 8, 9, 10], "0, 4, 8 to 10"), ([0, 1, 2, 5], "0 to 2, 5")],
)
def test_numbers_are_shown_as_ranges(revisions, shown):
    assert ranges(revisions) == shown
