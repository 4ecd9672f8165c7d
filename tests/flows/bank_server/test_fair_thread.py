"""Clients of one thread take turns, whatever one of them piles up."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coevo.flows.bank_server.bank_service import FairThread


def order(clients):
    """Clients in the order in which they were served, all of whose work waits before any is done."""
    fair, served, go = FairThread("fair"), [], threading.Event()

    async def all_of_them():
        first = asyncio.ensure_future(fair.run("first", go.wait))
        await asyncio.sleep(0)
        acts = [
            asyncio.ensure_future(fair.run(client, lambda client=client: served.append(client))) for client in clients
        ]
        await asyncio.sleep(0)
        go.set()
        await asyncio.gather(first, *acts)

    asyncio.run(all_of_them())
    fair.close()
    return served


@given(clients=st.lists(st.sampled_from("abc"), max_size=12))
def test_a_client_waits_for_at_most_one_turn_of_each_other(clients):
    served = order(clients)
    assert sorted(served) == sorted(clients)
    for client in set(clients):
        turns = [place for place, each in enumerate(served) if each == client]
        for before, after in zip([-1, *turns], turns, strict=False):
            between = served[before + 1 : after]
            assert len(set(between)) == len(between)


def test_an_error_is_its_clients_own():
    fair = FairThread("fair")

    async def both():
        failing = asyncio.ensure_future(fair.run("a", lambda: 1 // 0))
        other = asyncio.ensure_future(fair.run("b", lambda: 2))
        with pytest.raises(ZeroDivisionError):
            await failing
        return await other

    assert asyncio.run(both()) == 2
    fair.close()


def test_work_that_nobody_waits_for_any_more_is_left_out():
    fair, done, go = FairThread("fair"), [], threading.Event()

    async def all_of_them():
        first = asyncio.ensure_future(fair.run("a", go.wait))
        left = asyncio.ensure_future(fair.run("b", lambda: done.append("left")))
        await asyncio.sleep(0.01)
        left.cancel()
        go.set()
        await first
        await fair.run("c", lambda: done.append("kept"))

    asyncio.run(all_of_them())
    assert done == ["kept"]
    fair.close()
