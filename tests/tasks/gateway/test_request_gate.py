"""Requests pass an open gate, wait at a closed one, and are refused at one that is closed for good."""

import asyncio
from threading import Thread

import pytest

from coevo.tasks.gateway.gateway_session import OverError
from coevo.tasks.gateway.request_gate import RequestGate


async def has_passed(gate):
    """A request that tries to pass, once it had the time to."""
    entering = asyncio.ensure_future(gate.enter())
    await asyncio.sleep(0.05)
    return entering


def test_a_closed_gate_holds_requests_back_until_it_opens():
    async def scenario():
        gate = RequestGate(is_open=False)
        waiting = [await has_passed(gate) for _ in range(3)]
        assert not any(each.done() for each in waiting)
        Thread(target=gate.open).start()
        await asyncio.wait_for(asyncio.gather(*waiting), 30)
        assert (await has_passed(gate)).done()

    asyncio.run(scenario())


def test_it_closes_once_those_who_passed_have_left():
    async def scenario():
        gate = RequestGate()
        await gate.enter()
        closing = asyncio.ensure_future(asyncio.to_thread(gate.close))
        async with asyncio.timeout(60):
            while (later := await has_passed(gate)).done():  # the thread has not begun
                gate.leave()
        assert not closing.done()
        gate.leave()
        await asyncio.wait_for(closing, 30)
        assert not later.done()
        gate.open()
        await asyncio.wait_for(later, 30)

    asyncio.run(scenario())


def test_who_gives_up_waiting_keeps_nobody_from_passing():
    async def scenario():
        gate = RequestGate(is_open=False)
        first, second = await has_passed(gate), await has_passed(gate)
        first.cancel()
        await asyncio.sleep(0)
        gate.open()
        await asyncio.wait_for(second, 30)
        gate.leave()
        await asyncio.wait_for(asyncio.to_thread(gate.close), 30)  # the first is not inside

    asyncio.run(scenario())


def test_the_end_refuses_those_who_wait_and_those_who_come():
    async def scenario():
        gate = RequestGate(is_open=False)
        waiting = await has_passed(gate)
        gate.end("the run has stopped")
        for each in (waiting, gate.enter()):
            with pytest.raises(OverError, match="the run has stopped"):
                await asyncio.wait_for(each, 30)

    asyncio.run(scenario())
