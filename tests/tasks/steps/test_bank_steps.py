"""Metrics of a firing, by hand."""

from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from support.batches import entry, episode, turn
from support.completions import HANGS, Answer, completions, refused, said
from support.sessions import committed, do, opened
from support.worker import worker
from support.writer_models import quoting, quoting_writer

from coevo.configs.load.load import load_recipe
from coevo.memory.stats import Stats, retrieval_counts
from coevo.records.metric_names import SPREAD, UNREAD, UNSHOWN
from coevo.tasks.play.episode_metrics import spread
from coevo.tasks.run.open_run import take_up_writing
from coevo.tasks.steps.bank_steps import count_metrics, counts, unshown, update_statistics, write


def test_entries_that_come_and_go_are_counted():
    a, b, c = entry("a"), entry("b"), entry("c")
    found = counts({a.id}, {b.id, c.id}, (b.id, entry("d").id, entry("e").id))
    assert found == {
        "bank/admitted": 2.0,
        "bank/retired": 1.0,
        "bank/rejected": 2.0,
        "bank/size": 2.0,
        "bank/admitted_share": 0.5,
    }


def test_a_firing_without_candidates_has_no_share_of_them():
    assert "bank/admitted_share" not in counts({entry("a").id}, set(), ())


def test_retrievals_of_the_active_entries_are_metrics():
    found = count_metrics(retrieval_counts(["a", "b", "c"], {"a": Stats("a", 4), "b": Stats("b", 6)}))
    assert {name: value for name, value in found.items() if "histogram" not in name} == {
        "bank/retrieval/count_min": 0.0,
        "bank/retrieval/count_median": 4.0,
        "bank/retrieval/count_max": 6.0,
        "bank/retrieval/never_share": 1 / 3,
    }
    bins = {name: value for name, value in found.items() if "histogram" in name}
    assert {name: value for name, value in bins.items() if value} == {
        "bank/retrieval/count_histogram/from_0": 1.0,
        "bank/retrieval/count_histogram/from_4": 2.0,
    }
    assert count_metrics(None) == {}


BARE, SHOWN = [episode(turns=(turn(retrieved=()),))], [episode(turns=(turn(retrieved=()), turn()))]


def played(ended, draft=0.0, head=2.0, entries=("e",), within=False, warmup=0):
    """A session in iteration 7; ``within``: an earlier iteration of the same revision was played."""
    made = SimpleNamespace(metrics={UNSHOWN: head} if head else {})
    return SimpleNamespace(
        pending=SimpleNamespace(metrics={UNSHOWN: draft} if draft else {}),
        stores=SimpleNamespace(lineage=SimpleNamespace(history=SimpleNamespace(head=lambda: made))),
        bank=SimpleNamespace(entries=entries),
        iteration=7,
        frozen_at=6 if within else 7,
        due=SimpleNamespace(is_warm=lambda: warmup <= 7),
        ended=ended,
    )


@pytest.mark.parametrize(
    ("session", "now"),
    [
        (played(BARE), 3.0),
        (played(BARE, head=0.0), 1.0),
        (played(SHOWN), None),
        (played(BARE, entries=()), None),
        (played([]), 2.0),
        (played(BARE, warmup=8), 2.0),
        (played(BARE, warmup=7), 3.0),
        (played(BARE, draft=4.0, within=True), 5.0),
        (played(BARE, within=True), 1.0),
        (played(SHOWN, draft=4.0, within=True), 0.0),
    ],
)
def test_iterations_that_show_nothing_of_a_bank_are_counted_across_revisions(session, now):
    assert unshown(session) == ({} if now is None else {UNSHOWN: now})


def test_the_noise_of_success_is_that_between_tasks():
    """By hand: rates 0.5, 0 and 1 have the deviation 0.5, and their mean 0.5 / sqrt(3)."""
    batch = [episode(0, 0), episode(0, 1), episode(1, 0), episode(1, 2), episode(2, 1), episode(2, 3)]
    assert spread(batch) == {SPREAD: pytest.approx(0.5 / 3**0.5)}
    assert spread(batch[:2]) == {}


PLAYED, SILENT = episode(1), replace(episode(2, turns=()), cut="the prompt of the first turn is too long")
CUT, LOST = replace(PLAYED, cut="the prompt is too long"), replace(SILENT, cut="", lost="exception: gone")
NO_WORDS = episode(3, turns=(turn(action="", valid=False, fault="no action"),))


@pytest.mark.parametrize(
    ("ended", "settings", "unread"),
    [
        ([PLAYED] * 3, (), None),
        ([PLAYED, SILENT], (), 1),
        ([PLAYED, SILENT, SILENT], (), 2),
        ([SILENT] * 3, (), 3),
        ([], (), None),
        ([PLAYED, LOST], (), None),
        ([CUT, NO_WORDS], (), None),  # the writer reads what was played
        ([SILENT], ("bank.every=20",), 1),
        ([SILENT], ("bank.utility={}",), 1),
        ([SILENT], ("bank=null",), None),
    ],
    ids=["none", "one", "some", "all", "no episode", "lost", "cut off", "not due", "utilities", "no writer"],
)
def test_episodes_that_the_writer_is_not_asked_about_are_counted(tmp_path, ended, settings, unread):
    with opened(tmp_path, load_recipe("homerules-coevo-rl", settings)) as session:
        session.finish(ended)
        do(session, update_statistics)
        assert committed(session).metrics.get(UNREAD) == unread
        assert all(each.turns and not each.lost for each in session.recent)


def test_the_iterations_of_a_revision_add_up_the_episodes_without_an_action(tmp_path):
    with opened(tmp_path, load_recipe("homerules-coevo-rl")) as session:
        for ended in ([SILENT], [PLAYED], [SILENT, SILENT]):
            session.finish(ended)
            do(session, update_statistics)
        assert committed(session).metrics[UNREAD] == 3


@pytest.mark.parametrize(
    ("first", "sent"),
    [
        (said("{}"), {"requests": 2}),
        (Answer(b"busy", 500), {"requests": 3, "repeats": 1}),
        (refused("slow down", 429, Retry_After="0.1"), {"requests": 3, "refusals": 1}),
        (refused("response_format is not supported"), {"requests": 3}),
        (HANGS, {"requests": 3, "repeats": 1, "timeouts": 1}),
    ],
    ids=["none", "a failure", "a limit", "a form", "a time-out"],
)
def test_requests_in_vain_stand_in_the_metrics_of_their_revision(tmp_path, first, sent):
    with completions(lambda asked: quoting(asked) if asked.number else first) as (url, _):
        config = load_recipe("homerules-coevo-rl", [quoting_writer(url), "bank.writer.model.timeout=1.0"])
        with opened(tmp_path, config) as session, asking(session) as session.parts:
            for task in (1, 2):
                session.finish([episode(task, replica) for replica in range(2)])
            do(session, write)
            rates = committed(session).rates
    names = ("requests", "repeats", "refusals", "timeouts")
    assert {name: rates[f"cost/writer_model/{name}"] for name in names} == dict.fromkeys(names, 0) | sent


@contextmanager
def asking(session):
    """Parts of a session whose writer asks its model."""
    with take_up_writing(session.config, session.stores, worker().engine, None) as writing:
        yield replace(session.parts, writing=writing)
