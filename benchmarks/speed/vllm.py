"""vLLM under coevo and alone, on the same batches; and how long it takes until new weights are in use, checked."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import median

import psutil
import torch

from benchmarks.bench import Bench, BenchResult
from coevo.configs.policy_config import ScratchPolicyConfig
from coevo.configs.rollout.rollout_config import SamplingConfig, VllmEngineConfig
from coevo.models.engines.requests import Request
from coevo.models.engines.vllm.server_client import Client
from coevo.models.engines.vllm.vllm_engine import VllmEngine
from coevo.models.policy.language_model import Policy, ends_of
from coevo.models.policy.policy import build, load, save
from coevo.records.draws import generator, key
from coevo.records.episode import Completion

GROUPS, MEMBERS, HEAD, REST = 16, 8, 64, 24
"""A turn: groups, rollouts of each, tokens that they share, tokens of their own."""
ROUNDS, LOADS = 15, 21
SAMPLING = SamplingConfig(temperature=1.0, max_new_tokens=12)
WORDS = tuple(f"w{number}" for number in range(100))
SHARE_TARGET, SYNC_TARGET, GAP_TARGET = 0.9, 0.2, 1e-5


def run(bench: Bench) -> None:
    """Measure what is missing and print it."""
    found = bench.cell("cpu", lambda: measure(bench))
    print(
        f"\n{GROUPS} groups of {MEMBERS}: {found['tokens_per_second']:.0f} tokens/s, {found['share']:.0%} of the "
        f"{found['alone_tokens_per_second']:.0f} of vLLM alone, {found['cpu_share']:.0%} a CPU second "
        f"(target {SHARE_TARGET:.0%})\n"
        f"new weights in use and checked after {found['sync_seconds']:.3f} s, at best {found['sync_seconds_best']:.3f} "
        f"(target {SYNC_TARGET}); log-probs within {found['gap']:.1e} (target {GAP_TARGET:.0e})"
    )


def measure(bench: Bench) -> BenchResult:
    """One server of our own, with a policy of the size that the default recipe has."""
    directory = bench.workspace.root
    shutil.rmtree(directory, ignore_errors=True)
    for seed in range(2):
        save(build(ScratchPolicyConfig(), WORDS, key(seed, "vllm")), directory / f"policy-{seed}")
    config = VllmEngineConfig(type="vllm")
    with closing(VllmEngine(directory / "policy-0", config, SAMPLING, directory / "engine")) as engine:
        turn = requests(0)
        distance = gap(load(directory / "policy-0"), turn, engine.generate(turn))
        return _rates(engine) | _sync(engine, bench) | {"gap": distance}


def requests(number: int) -> list[Request]:
    """The prompts of one turn; another number, other prompts."""
    draws = generator(key(number, "turn"))

    def words(count: int) -> tuple[int, ...]:
        return tuple(int(token) for token in draws.integers(6, 6 + len(WORDS), count))

    heads = [words(HEAD) for _ in range(GROUPS)]
    return [
        Request(head + words(REST), key(number, group, member), f"{number}/{group}")
        for group, head in enumerate(heads)
        for member in range(MEMBERS)
    ]


@torch.inference_mode()
def gap(policy: Policy, asked: Sequence[Request], made: Sequence[Completion]) -> float:
    """Largest distance of log-probs from a forward of our own."""
    worst = 0.0
    for request, completion in zip(asked, made, strict=True):
        ids = torch.tensor([request.prompt_ids + completion.token_ids])
        logprobs = policy.model(input_ids=ids).logits[0, len(request.prompt_ids) - 1 : -1].double()
        ours = logprobs.log_softmax(-1).gather(-1, torch.tensor(completion.token_ids)[:, None]).squeeze(-1)
        worst = max(worst, float((ours - torch.tensor(completion.logprobs)).abs().max()))
    return worst


@dataclass(frozen=True)
class TurnCost:
    """Cost of one turn; the CPU seconds are the server's and ours, and tell more than the clock on a busy machine."""

    tokens: int
    seconds: float
    cpu_seconds: float


def _rates(engine: VllmEngine) -> BenchResult:
    """Tokens per second of both, taken in turn; neither finds prefixes of the other."""
    client, ends = Client(engine.replicas[0].url, 300, engine.key), ends_of(engine.policy)

    def ours(turn: Sequence[Request]) -> int:
        return sum(len(completion.token_ids) for completion in engine.generate(turn))

    def alone(turn: Sequence[Request]) -> int:
        answer = client.post("/v1/completions", body(turn, ends))
        return sum(len(choice["token_ids"]) for choice in answer["choices"])

    def timed(ask: Callable[[Sequence[Request]], int], number: int) -> TurnCost:
        turn = requests(number)
        engine.forget()
        used, since = _cpu_seconds(engine), time.perf_counter()
        tokens = ask(turn)
        return TurnCost(tokens, time.perf_counter() - since, _cpu_seconds(engine) - used)

    mine: list[TurnCost] = []
    theirs: list[TurnCost] = []
    for number in range(ROUNDS):
        order = [(mine, ours), (theirs, alone)]
        for turns, ask in order[:: 1 if number % 2 else -1]:
            turns.append(timed(ask, number))
    clock, alone_clock = _rate(mine, lambda turn: turn.seconds), _rate(theirs, lambda turn: turn.seconds)
    cpu, alone_cpu = _rate(mine, lambda turn: turn.cpu_seconds), _rate(theirs, lambda turn: turn.cpu_seconds)
    return {
        "tokens_per_second": clock,
        "alone_tokens_per_second": alone_clock,
        "share": clock / alone_clock,
        "tokens_per_cpu_second": cpu,
        "alone_tokens_per_cpu_second": alone_cpu,
        "cpu_share": cpu / alone_cpu,
        "rows": GROUPS * MEMBERS,
    }


def _rate(turns: Sequence[TurnCost], spent: Callable[[TurnCost], float]) -> float:
    """Tokens of all turns over what all of them took."""
    return sum(turn.tokens for turn in turns) / sum(spent(turn) for turn in turns)


def _cpu_seconds(engine: VllmEngine) -> float:
    """CPU seconds that the server and this process have used so far."""
    server = engine.replicas[0].server
    assert server is not None
    family = [psutil.Process(), *psutil.Process(server.pid).children(recursive=True)]
    return float(sum(process.cpu_times().user + process.cpu_times().system for process in family))


def body(turn: Sequence[Request], ends: Sequence[int]) -> dict[str, object]:
    """Request to vLLM's own endpoint: the same, but for the seeds that it does not take."""
    return {
        "prompt": [request.prompt_ids for request in turn],
        "max_tokens": SAMPLING.max_new_tokens,
        "temperature": SAMPLING.temperature,
        "stop_token_ids": list(ends),
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


def _sync(engine: VllmEngine, bench: Bench) -> BenchResult:
    seconds = []
    for number in range(1, LOADS + 1):
        since = time.perf_counter()
        engine.load(bench.workspace.root / f"policy-{number % 2}")
        seconds.append(time.perf_counter() - since)
    return {"sync_seconds": median(seconds), "sync_seconds_best": min(seconds)}
