"""Order, cursor and patience of publishing."""

import threading

import pytest

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.publish.mlflow.publication import Publication
from coevo.tasks.publish.mlflow.tracking_store import TrackingError
from coevo.tasks.publish.publisher import Publisher


class Cursor:
    def __init__(self, value=-1):
        self.value = value

    def read(self):
        return self.value

    def move(self, revision):
        self.value = revision


def revision(number):
    return Publication(Manifest({"revision": number}, {}), "c", [])


def publisher(publish, cursor, notice=lambda _: None):
    return Publisher(lambda one: publish(one.manifest.state["revision"]), cursor.read, cursor.move, notice)


def test_revisions_are_published_in_order_in_another_thread():
    seen, threads, cursor = [], set(), Cursor()

    def publish(number):
        assert cursor.value == number - 1
        seen.append(number)
        threads.add(threading.current_thread())

    it = publisher(publish, cursor)
    for number in range(5):
        it.submit(revision(number))
    assert it.close() is None
    assert seen == [0, 1, 2, 3, 4]
    assert cursor.value == 4
    assert threading.current_thread() not in threads


def test_submitting_does_not_wait():
    gate, cursor = threading.Event(), Cursor()
    it = publisher(lambda _: gate.wait(10), cursor)
    it.submit(revision(0))
    assert cursor.value == -1
    gate.set()
    assert it.close() is None
    assert cursor.value == 0


def test_what_the_cursor_has_is_not_published_again():
    seen = []
    it = publisher(seen.append, Cursor(1))
    for number in range(4):
        it.submit(revision(number))
    it.close()
    assert seen == [2, 3]


def test_what_fails_is_tried_again_and_nothing_overtakes_it():
    seen, cursor = [], Cursor()

    def publish(number):
        seen.append(number)
        if seen.count(0) < 3 and number == 0:
            raise TrackingError("MLflow is away")

    it = publisher(publish, cursor)
    it.submit(revision(0))
    it.submit(revision(1))
    assert it.close() is None
    assert seen == [0, 0, 0, 1]
    assert cursor.value == 1


def test_what_stays_unpublished_is_said_in_one_line_and_kept_for_resume():
    cursor = Cursor()

    def publish(number):
        if number:
            raise TrackingError("MLflow is away")

    it = publisher(publish, cursor)
    for number in range(3):
        it.submit(revision(number))
    assert it.close(patience=0) == ("2 revisions are not published: MLflow is away; `coevo resume` publishes the rest")
    assert cursor.value == 0


def test_that_publishing_fails_is_said_when_it_begins_and_not_again():
    said, cursor, broken = [], Cursor(), {0, 1, 5}

    def publish(number):
        if number in broken:
            raise TrackingError(f"no {number}")

    it = publisher(publish, cursor, said.append)
    for number in range(3):
        it.submit(revision(number))
    broken -= {0, 1}
    for number in range(3, 6):
        it.submit(revision(number))
    assert it.close(patience=0.1) == "1 revision is not published: no 5; `coevo resume` publishes the rest"
    assert said == [f"no {number}; the run continues and tries again with each revision" for number in (0, 5)]


def test_an_unexpected_error_is_not_swallowed():
    def publish(_):
        raise ZeroDivisionError

    it = publisher(publish, Cursor())
    it.submit(revision(0))
    with pytest.raises(ZeroDivisionError):
        it.close()
