"""Sleep and its faults, with a small program in the place of vLLM: a real process, to be killed and hung at will."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psutil
import pytest
from support.families import kill_all
from support.vllm_standin import PROBE, PROMPT, SERVER
from support.weights import known

from coevo.configs.rollout.rollout_config import VllmEngineConfig
from coevo.models.engines.vllm.replica import Replica
from coevo.models.engines.vllm.server_client import UnreachableError
from coevo.models.engines.vllm.vllm_server import VllmServer
from coevo.utilities.errors import CoevoError
from coevo.utilities.processes import PlaceLostError

TAKEN = ["/collective_rpc", "/wake_up?tags=kv_cache", "/reset_prefix_cache", "/collective_rpc", "/v1/completions"]


@contextmanager
def sleeping(tmp_path, level=2, adapter="", **settings):
    """A replica that sleeps, and a function that tells what it was asked since it was last told."""
    asked = tmp_path / "asked"

    def start(weights):
        return VllmServer([sys.executable, "-c", SERVER, str(asked)], {}, tmp_path / "log")

    def told():
        lines = asked.read_text().splitlines()
        asked.write_text("")
        return lines

    config = VllmEngineConfig(type="vllm", **settings)
    with closing(Replica(config, known(tmp_path, adapter, PROBE), start)) as replica:
        replica.complete(PROMPT)
        told()
        replica.sleep(level)
        yield replica, told


def requested_after_a_kill(tmp_path, later=SERVER):
    """Answers to many requests at once, or their errors, of a server that was killed, and the number of starts."""
    starts = []

    def start(weights):
        line = [sys.executable, "-c", later if starts else SERVER, str(tmp_path / "asked")]
        starts.append(VllmServer(line, {}, tmp_path / "log"))
        return starts[-1]

    def ask(_):
        try:
            return replica.complete(PROMPT)
        except CoevoError as error:
            return str(error)

    with closing(Replica(VllmEngineConfig(type="vllm"), known(tmp_path, "", PROBE), start)) as replica:
        replica.complete(PROMPT)
        served = processes(replica)
        kill_all(served)
        assert not psutil.wait_procs(served, timeout=60)[1]
        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(ask, range(4))), len(starts)


def test_one_that_dies_under_many_requests_is_started_anew_once(tmp_path):
    answers, starts = requested_after_a_kill(tmp_path)
    assert [answer[0]["token_ids"] for answer in answers] == [[1]] * 4
    assert starts == 2


def test_many_requests_to_one_that_cannot_be_started_anew_fail_with_its_error(tmp_path):
    errors, starts = requested_after_a_kill(tmp_path, "raise SystemExit('Error: no memory')")
    assert all("no memory" in error for error in errors)
    assert starts < 2 + 4


def lost():
    raise PlaceLostError("its node has gone")


def lost_while_it_loads(server):
    server.wait = lambda seconds, ready: lost()


@pytest.mark.parametrize(
    "fates",
    [
        (lost_while_it_loads,),
        (None, lost_while_it_loads),
        (None, lambda server: lost()),
        (None, lambda server: lost(), lost_while_it_loads),
    ],
    ids=["first", "replacement", "replacement that starts", "two replacements"],
)
def test_one_whose_node_ends_as_it_starts_is_replaced(tmp_path, fates):
    servers = []

    def start(weights):
        servers.append(VllmServer([sys.executable, "-c", SERVER, str(tmp_path / "asked")], {}, tmp_path / "log"))
        fate = fates[len(servers) - 1] if len(servers) <= len(fates) else None
        if fate is not None:
            fate(servers[-1])
        return servers[-1]

    with closing(Replica(VllmEngineConfig(type="vllm", restarts=3), known(tmp_path, "", PROBE), start)) as replica:
        if fates[0] is None:
            replica.complete(PROMPT)
            kill_all(processes(replica))
        assert replica.complete(PROMPT)[0]["token_ids"] == [1]
    assert len(servers) == len(fates) + 1
    for server in servers:
        server.stop()


def test_a_replacement_that_cannot_be_verified_is_asked_for_nothing(tmp_path, monkeypatch):
    def hung():
        raise UnreachableError("it hangs")

    with sleeping(tmp_path) as (replica, told):
        replica.load(known(tmp_path, "", PROBE))
        kill_all(processes(replica))
        told()
        monkeypatch.setattr(replica, "_verify", hung)
        with pytest.raises(UnreachableError, match=r"^it hangs$"):
            replica.complete(PROMPT)
        assert told() == []


def processes(replica):
    return psutil.Process(replica.server.pid).children(recursive=True)


def test_memory_comes_back_for_weights_first_and_then_for_the_cache(tmp_path):
    with sleeping(tmp_path) as (replica, told):
        replica.sleep(2)
        replica.forget()
        assert told() == ["/sleep?level=2"]
        replica.load(known(tmp_path, "", PROBE))
        assert told() == ["/wake_up?tags=weights", *TAKEN]
        replica.load(known(tmp_path, "", PROBE))
        assert told() == [TAKEN[0], *TAKEN[2:]]


def test_adapters_are_laid_over_a_base_that_is_awake(tmp_path):
    with sleeping(tmp_path, 1, "adapter-0") as (replica, told):
        replica.load(known(tmp_path, "adapter-1", PROBE))
        changed = ["/v1/load_lora_adapter", "/v1/unload_lora_adapter"]
        assert told() == ["/sleep?level=1", "/wake_up?tags=weights", *changed, *TAKEN[1:3], TAKEN[4]]


def test_who_is_asked_for_something_wakes(tmp_path):
    with sleeping(tmp_path) as (replica, told):
        assert len(replica.complete(PROMPT)) == 1
        assert told() == ["/sleep?level=2", "/wake_up?tags=weights", *TAKEN, "/coevo/completions"]


def test_one_that_dies_asleep_is_started_anew_when_it_is_to_wake(tmp_path):
    with sleeping(tmp_path) as (replica, told):
        (server,) = processes(replica)
        server.kill()
        assert not psutil.wait_procs([server], timeout=30)[1]
        told()
        replica.load(known(tmp_path, "", PROBE))
        assert processes(replica)
        assert "/sleep?level=2" not in told()
        assert len(replica.complete(PROMPT)) == 1


def test_one_that_hangs_on_its_way_to_sleep_is_ended_and_leaves_its_gpu_so(tmp_path):
    with sleeping(tmp_path, timeout=2.0) as (replica, _):
        replica.load(known(tmp_path, "", PROBE))
        (server,) = processes(replica)
        server.suspend()
        replica.sleep(2)
        assert not psutil.wait_procs([server], timeout=30)[1]
        assert len(replica.complete(PROMPT)) == 1


def test_one_that_may_not_be_started_anew_is_one_line(tmp_path):
    with sleeping(tmp_path, restarts=0) as (replica, _):
        processes(replica)[0].kill()
        with pytest.raises(CoevoError, match="does not answer") as raised:
            replica.load(known(tmp_path, "", PROBE))
        assert "\n" not in str(raised.value)
