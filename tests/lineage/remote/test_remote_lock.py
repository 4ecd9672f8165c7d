"""One machine at a time continues a run: conditional writes in a directory and on S3."""

import re
import threading

import pytest
from support.s3_server import BUCKET

from coevo.lineage.remote.remote_address import to_push
from coevo.lineage.remote.remote_lock import LOST_S, RemoteLock
from coevo.lineage.remote.remote_store import Overtaken
from coevo.utilities.errors import CoevoError

NOW = 1_790_000_000.0


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.full)])
def address(request, tmp_path):
    if request.param == "directory":
        return str(tmp_path / "remote")
    request.getfixturevalue("s3")
    return f"s3://{BUCKET}/team"


@pytest.fixture
def lock(address):
    def make(purpose="", seconds=0.0):
        return RemoteLock(to_push(address), "first", purpose, lambda: NOW + seconds)

    return make


def test_a_lock_has_one_holder_and_is_free_again_after_it(lock):
    mine, other = lock("a study"), lock()
    mine.take()
    with pytest.raises(
        CoevoError, match=r"is in use by process \d+ on .+ \(a study\) since 2026-09-21 .+ UTC, seen 0 s"
    ):
        other.take(if_lost=True)
    mine.renew()
    assert re.fullmatch(r"process \d+ on .+ \(a study\), seen 0 s ago", lock().owner())
    mine.release()
    assert other.owner() is None
    other.take()
    mine.release()  # does not free what it no longer holds
    with pytest.raises(CoevoError, match="is in use by"):
        lock().take()


@pytest.mark.parametrize("address", ["directory"], indirect=True)  # moto checks a condition and stores in two steps
def test_of_many_that_race_one_wins(lock):
    for _ in range(2):
        together, won = threading.Barrier(8), []

        def race(one, together=together, won=won):
            together.wait(60)
            try:
                one.take()
            except CoevoError:
                return
            won.append(one)

        threads = [threading.Thread(target=race, args=(lock(str(number)),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = won
        winner.release()


def test_a_lost_lock_is_found_by_owner_and_age_and_a_holder_that_was_frozen_learns_of_it(lock):
    frozen = lock("a scheduled session")
    frozen.take()
    with pytest.raises(CoevoError) as refusal:
        lock(seconds=2 * 86400).take()
    assert re.search(
        r"process \d+ on .+ was last seen 2 d ago: if .+ ended, repeat with --take-over$", str(refusal.value)
    )
    lock(seconds=LOST_S + 1).take(if_lost=True)
    with pytest.raises(Overtaken):
        frozen.renew()
    frozen.release()
    assert lock(seconds=LOST_S + 1).owner() is not None
    lock().take(take_over=True)


@pytest.mark.parametrize("renews", [True, False])
def test_a_session_waits_for_the_lock_of_a_process_that_may_have_died(address, renews):
    now = [NOW]
    holder = RemoteLock(to_push(address), "first", "a session", lambda: now[0])
    holder.take()
    waits = []

    def sleep(seconds):
        now[0] += seconds
        waits.append(seconds)
        if renews:
            holder.renew()

    follower = RemoteLock(to_push(address), "first", clock=lambda: now[0])
    if renews:
        with pytest.raises(CoevoError, match="is in use by"):
            follower.await_lost(sleep)
    else:
        follower.await_lost(sleep)
        assert sum(waits) > LOST_S
        with pytest.raises(Overtaken):
            holder.renew()


@pytest.mark.parametrize(
    "content", [b"", b"{}", b'{"owner": 3}', b"\xff", b'{"owner":"a\\nb","since":0,"seen":0,"token":""}']
)
def test_a_damaged_lock_is_one_line_with_the_remedy(address, lock, content):
    to_push(address).write(content, None, "locks", "first.json")
    with pytest.raises(
        CoevoError, match="its lock is damaged: if no machine continues the run, repeat with --take-over"
    ):
        lock().take()
    assert lock().owner() == "an unknown process"
    lock().take(take_over=True)
