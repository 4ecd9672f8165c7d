"""Prompts of many clients become batches of an engine, each gets its own completion, and a failure is its own."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from coevo.models.engines.requests import Request
from coevo.records.draws import key
from coevo.records.episode import Completion
from coevo.tasks.gateway.draw_queue import DrawQueue
from coevo.utilities.errors import CoevoError


class Echo:
    """Completes a prompt by itself; notes its batches, and waits before each for ``go``."""

    def __init__(self):
        self.batches, self.go = [], Event()
        self.go.set()

    def generate(self, requests):
        self.go.wait()
        self.batches.append([each.prompt_ids for each in requests])
        if (0,) in self.batches[-1]:
            raise CoevoError("broken")
        return [Completion(each.prompt_ids, (0.0,), "x", True) for each in requests]


def request(number):
    return Request((number,), key(number), "g")


@pytest.mark.parametrize("threads", [1, 8])
def test_each_client_gets_its_own(threads):
    engine = Echo()
    queue = DrawQueue(engine, 1 if threads > 1 else 16, threads)
    start = Barrier(16)

    def client(number):
        start.wait()
        return [queue.submit([request(100 * number + each)])[0].result().token_ids for each in range(1, 20)]

    with ThreadPoolExecutor(16) as clients:
        found = list(clients.map(client, range(16)))
    assert found == [[(100 * number + each,) for each in range(1, 20)] for number in range(16)]
    assert max(map(len, engine.batches)) <= (1 if threads > 1 else 16)
    queue.close()


def test_what_waits_is_one_batch_up_to_the_limit():
    engine = Echo()
    queue = DrawQueue(engine, 4)
    engine.go.clear()
    answers = queue.submit([request(number) for number in range(1, 10)])
    engine.go.set()
    assert [each.result().token_ids for each in answers] == [(number,) for number in range(1, 10)]
    assert max(map(len, engine.batches)) == 4
    queue.close()


@pytest.mark.parametrize("bad", range(4))
def test_a_prompt_that_fails_fails_alone(bad):
    engine = Echo()
    queue = DrawQueue(engine, 4)
    engine.go.clear()
    answers = queue.submit([request(0 if number == bad else number + 1) for number in range(4)])
    engine.go.set()
    for number, each in enumerate(answers):
        if number == bad:
            with pytest.raises(CoevoError, match="broken"):
                each.result()
        else:
            assert each.result().token_ids == (number + 1,)
    queue.close()


def test_a_failure_reaches_its_clients_and_the_next_batch_is_drawn():
    queue = DrawQueue(Echo(), 4)
    with pytest.raises(CoevoError, match="broken"):
        queue.submit([request(0)])[0].result()
    assert queue.submit([request(5)])[0].result().token_ids == (5,)
    queue.close()
