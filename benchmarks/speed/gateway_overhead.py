"""The gateway's overhead: the same prompts to an engine directly and through the gateway, in one run.

Client, gateway and stub engine are processes of their own. Direct and gateway calls alternate; a difference is that of
two medians, or of two 95th percentiles. A call has a history of 2,000 tokens and one new message, and gets 32 tokens
with log-probs. Agents before a slow engine ask one call after the other; open sessions have the same history each.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from threading import local
from time import perf_counter
from typing import Any

from psutil import Process

from benchmarks.bench import ROOT, Bench, BenchResult
from benchmarks.speed.gateway_processes import DRAWN, HOST, TOKEN
from coevo.utilities.local_http import answers, free_port
from coevo.utilities.processes import Launch, ServerProcess, wait_ready

CALLS, ROUNDS, WARM = 100, 9, 10
AGENTS, TURNS, SLOW_S = 64, 6, 1.0
OPEN = 1000
HISTORY_TOKENS = 2000
MESSAGE = "You observe: a mug on the counter, a closed safe, and a drawer. What do you do next? " * 6
"""Each message of a history."""
TARGETS = {"median_ms": 2.0, "p95_ms": 6.0, "agents_ratio": 1.2, "gib": 1.5}
"""Figures to stay below."""


@dataclass(frozen=True, slots=True)
class Started:
    """A stub and the gateway before it."""

    stub: int
    gateway: int
    memory: Callable[[], int]
    cpu: Callable[[], float]


class HttpClient:
    """A client of one port with a connection per thread, which stays open."""

    def __init__(self, port: int) -> None:
        self._port, self._own = port, local()

    def post(self, path: str, body: object) -> Any:
        """The answer to a body."""
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = HTTPConnection(HOST, self._port, timeout=120)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        connection.request("POST", path, json.dumps(body).encode(), headers)
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}: {text[:200]!r}")
        return json.loads(text)


def run(bench: Bench) -> None:
    """Measure each part where it is missing, and print the figures."""
    report({**bench.cell("overhead", overhead), **bench.cell("agents", agents), **bench.cell("sessions", sessions)})


def report(result: BenchResult) -> None:
    """Print the figures beside their targets."""
    print(
        f"\none call in flight: {result['median_ms']:.2f} ms added in the median (target {TARGETS['median_ms']:g}), "
        f"{result['p95_ms']:.2f} ms in the 95th percentile (target {TARGETS['p95_ms']:g}); the engine alone takes "
        f"{result['direct_median_ms']:.2f} ms; the gateway's processor time is {result['cpu_ms']:.2f} ms"
    )
    print(
        f"{AGENTS} agents before an engine of {SLOW_S:g} s: 95th percentile {result['agents_ratio']:.3f} × that of the "
        f"engine alone (target {TARGETS['agents_ratio']:g})"
    )
    print(
        f"{result['open']} sessions open at once: {result['gib']:.2f} GiB (target {TARGETS['gib']:g}), "
        f"{result['open'] - result['kept']} lost"
    )


def overhead(calls: int = CALLS, rounds: int = ROUNDS) -> BenchResult:
    """Milliseconds that the gateway adds to a call, one at a time: medians of rounds, for a loaded machine."""
    found = list[dict[str, float]]()
    with pair(0.0) as both:
        client, engine = HttpClient(both.gateway), HttpClient(both.stub)
        for number in range(rounds):
            ask, prompt = _talk(client, f"round-{number}")
            prompted = {"prompt": [prompt], "max_tokens": DRAWN, "logprobs": 0}
            since = both.cpu()
            found.append(_round(calls, partial(engine.post, "/v1/completions", prompted), ask))
            found[-1]["cpu_ms"] = 1000 * (both.cpu() - since) / (WARM + calls)
    return {"calls": calls, "rounds": rounds, **{name: median(each[name] for each in found) for name in found[0]}}


def _round(calls: int, direct: Callable[[], Any], through: Callable[[], Any]) -> dict[str, float]:
    times: dict[str, list[float]] = {"direct": [], "gateway": []}
    for number in range(WARM + calls):
        for name, call in (("direct", direct), ("gateway", through)):
            seconds = _timed(call)
            if number >= WARM:
                times[name].append(1000 * seconds)
    alone, both = _quantiles(times["direct"]), _quantiles(times["gateway"])
    named = {"direct_median_ms": alone[0], "direct_p95_ms": alone[1], "gateway_median_ms": both[0]}
    return {**named, "gateway_p95_ms": both[1], "median_ms": both[0] - alone[0], "p95_ms": both[1] - alone[1]}


def agents(count: int = AGENTS, turns: int = TURNS, delay: float = SLOW_S) -> BenchResult:
    """Time of a turn of many agents through the gateway, as a multiple of the engine's alone."""
    with pair(delay) as both, ThreadPoolExecutor(count) as threads:
        client, engine = HttpClient(both.gateway), HttpClient(both.stub)

        def through(number: int) -> list[float]:
            ask, _ = _talk(client, f"agent-{number}")
            return [_timed(ask) for _ in range(turns)]

        def direct(prompt: Sequence[int]) -> list[float]:
            body = {"prompt": [prompt], "max_tokens": DRAWN, "logprobs": 0}
            return [_timed(lambda: engine.post("/v1/completions", body)) for _ in range(turns)]

        _, prompt = _talk(client, "first")
        alone = [each for found in threads.map(direct, [prompt] * count) for each in found]
        together = [each for found in threads.map(through, range(count)) for each in found]
    direct_p95, gateway_p95 = _quantiles(alone)[1], _quantiles(together)[1]
    return {"agents": count, "direct_p95_s": direct_p95, "gateway_p95_s": gateway_p95,
            "agents_ratio": gateway_p95 / direct_p95}  # fmt: skip


def sessions(count: int = OPEN) -> BenchResult:
    """Memory of a gateway with many open sessions, and how many of them end with all their answers."""
    with pair(0.0) as both, ThreadPoolExecutor(32) as threads:
        client = HttpClient(both.gateway)

        def talk(number: int) -> None:
            ask, _ = _talk(client, f"s{number}")
            ask()

        list(threads.map(talk, range(count)))
        used = both.memory()
        outcome = {"reward": 1.0, "success": True}
        ended = list(threads.map(lambda number: client.post(f"/s/s{number}/outcome", outcome)["end"], range(count)))
    return {"open": count, "gib": used / 2**30, "kept": ended.count("outcome")}


@contextmanager
def pair(delay: float) -> Iterator[Started]:
    """A stub and a gateway in processes of their own."""
    with TemporaryDirectory() as directory, ExitStack() as stack:
        stub, gateway = free_port(), free_port()
        _start(stack, directory, "stub", stub, str(delay))
        process = _start(stack, directory, "gateway", gateway, f"http://{HOST}:{stub}", f"{directory}/sessions")
        running = Process(process.pid)
        yield Started(stub, gateway, lambda: int(running.memory_info().rss), lambda: sum(running.cpu_times()[:2]))


def _start(stack: ExitStack, directory: str, kind: str, port: int, *arguments: str) -> ServerProcess:
    line = [sys.executable, "-P", "-m", "benchmarks.speed.gateway_processes", kind, str(port), *arguments]
    process = ServerProcess(Launch(line, {**os.environ, "PYTHONPATH": str(ROOT)}, Path(directory, f"{kind}.log"), ROOT))
    stack.callback(process.stop)
    if not wait_ready(lambda: answers(f"http://{HOST}:{port}/health"), process.runs, 120):
        raise RuntimeError(Path(directory, f"{kind}.log").read_text(encoding="utf-8"))
    return process


def _talk(client: HttpClient, session: str) -> tuple[Callable[[], Any], list[int]]:
    """A session with its history: the call that sends one message more, and the token ids of its prompt."""
    path, wanted = f"/s/{session}/v1/chat/completions", {"model": "m", "logprobs": True}
    messages, prompt = [{"role": "user", "content": MESSAGE}], list[int]()
    while len(prompt) < HISTORY_TOKENS:
        reply = client.post(path, {**wanted, "messages": messages, "return_token_ids": True})
        prompt = [*reply["prompt_token_ids"], *reply["choices"][0]["token_ids"]]
        messages += [reply["choices"][0]["message"], {"role": "user", "content": MESSAGE}]
    body = {**wanted, "messages": messages}
    return lambda: client.post(path, body), prompt


def _timed(call: Callable[[], Any]) -> float:
    since = perf_counter()
    call()
    return perf_counter() - since


def _quantiles(times: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    cuts = quantiles(times, n=20)
    return cuts[9], cuts[18]
