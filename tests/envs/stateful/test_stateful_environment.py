"""Positions of stateful environments: replay, purity, and whose episode it is."""

import os
import re
import signal
from contextlib import closing
from threading import Timer

import psutil
import pytest
from support.scheduled import wait_for
from support.simulators import (
    ClingingSums,
    Clocks,
    FailingSums,
    HeavySums,
    LateSums,
    MixedSums,
    OnceSums,
    ScoredSums,
    ShakySums,
    Sums,
)

from coevo.envs.failures import EpisodeFailure, EpisodeLostError
from coevo.envs.stateful import local_workers
from coevo.envs.stateful.interface import Opening
from coevo.records.draws import key


@pytest.fixture(scope="module")
def env():
    with closing(FailingSums(limits={"act_seconds": 3.0, "longest": 1000, "workers": 2})) as made:
        yield made


def tasks(count):
    return Sums().sample(count, key("tasks"))


def played(env, task, actions):
    """Observations of an episode, and its last position."""
    state, seen = env.start(task)
    found = [seen]
    for action in actions:
        (step,) = env.step([state], [action])
        state, found = step.state, [*found, step.observation]
    return found, state


def test_an_old_position_stays_as_it_is(env):
    (task,) = tasks(1)
    _, state = played(env, task, ["1"])
    first, second = (env.step([state], ["1"])[0] for _ in range(2))
    assert first == second
    assert first.state.claim is not second.state.claim
    assert env.step([first.state], ["0"]) == env.step([second.state], ["0"])
    both = env.step([state, state], ["1", "0"])
    assert [both[0], both[1].observation] == [first, env.step([state], ["0"])[0].observation]


def test_results_depend_on_neither_workers_nor_order():
    outcomes = []
    for workers, order in ((1, 1), (3, -1)):
        with closing(Sums(target=100, limits={"workers": workers})) as made:
            states = [state for state, _ in made.try_start(tasks(6)[::order])]
            steps = made.step(made_states(made, states), list("123456")[::order])
            outcomes.append([(step.observation, step.state.trace) for step in steps][::order])
    assert outcomes[0] == outcomes[1]


def made_states(env, states):
    return [step.state for step in env.step(states, ["1"] * len(states))]


def without_line(loss):
    """A loss in words, without the number of the line that raised it."""
    return re.sub(r"\.py:\d+\)", ".py)", str(loss))


@pytest.fixture(scope="module")
def alone(env):
    """Observations of the first five tasks after an action, each by itself."""
    return [played(env, task, ["1"])[0][1] for task in tasks(5)]


REASONS = {
    "raise": "exception: RuntimeError: out of order (simulators.py)",
    "cancel": "exception: CancelledError: (simulators.py)",
    "leave": "exception: SystemExit: no server (simulators.py)",
    "panic": "exception: PanicError: in Rust (simulators.py)",
    "interrupt": "exception: KeyboardInterrupt: (simulators.py)",
    "group": "exception: BaseExceptionGroup: all (1 sub-exception) (simulators.py)",
    "unsayable": "exception: UnsayableError: its text raises ValueError (simulators.py)",
    "long": "invalid: a text of 5000 characters, more than env.simulator.longest=1000",
    "nan": "invalid: step.reward = 'nan': Input should be a finite number",
    "text": "invalid: step.observation = '7': Input should be a valid string",
    "array": "invalid: step.observation = \"['ndarray']\": Input should be a valid string",
    "nothing": "invalid: no step",
}


@pytest.mark.parametrize(
    "reasons",
    [REASONS, {"exit": "crash: its process ended with exit code 3"}, {"hang": "timeout: no answer in 3 s"}],
    ids=["one at a time", "exit", "hang"],
)
def test_a_failure_costs_its_own_episode_alone(env, alone, reasons):
    one, two, failing, three, four = tasks(5)
    states = [state for state, _ in env.try_start([one, two, *[failing] * len(reasons), three, four])]
    steps = env.try_step(states, ["1", "1", *reasons, "1", "1"])
    assert list(map(without_line, steps[2:-2])) == list(reasons.values())
    assert [step.observation for step in steps[:2] + steps[-2:]] == alone[:2] + alone[3:]
    env.release([step.state for step in steps[:2] + steps[-2:]])


def test_an_episode_that_opens_at_the_second_try_is_not_opened_again(tmp_path):
    log = tmp_path / "log"
    with closing(OnceSums(str(log), bad={1}, limits={"workers": 1})) as made:
        assert [seen for _, seen in made.try_start(tasks(2))] == ["total 0"] * 2
    assert log.read_text().count("open") == 3


def test_neighbours_of_a_crash_are_played_again_also_where_that_fails_once(tmp_path):
    log = tmp_path / "log"
    with closing(MixedSums(str(log), bad={5}, limits={"workers": 1})) as made:
        states = [state for state, _ in made.try_start(tasks(4))]
        steps = made.try_step(states, ["exit", "1", "1", "1"])
    assert [str(step) for step in steps if isinstance(step, EpisodeFailure)] == [
        "crash: its process ended with exit code 3"
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.full)])
@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(name, marks=pytest.mark.full if number else ())
        for number, name in enumerate(["fork", "fork and wait", "die later", "end guard later", "SIGKILL", "SIGTERM"])
    ],
)
def test_a_worker_that_forks_or_ends_between_two_actions_costs_no_episode(tmp_path, alone, trouble, workers):
    log = tmp_path / "log"
    with closing(FailingSums(str(log), limits={"act_seconds": 50.0, "workers": workers})) as made:
        states = [state for state, _ in made.try_start(tasks(5))]
        pids = {int(line.split()[1]) for line in log.read_text().splitlines()}
        guarded = {pid: [psutil.Process(pid), *psutil.Process(pid).parents()[:2]] for pid in pids}
        if trouble.startswith("SIG"):
            os.kill(max(pids), signal.Signals[trouble])
        else:
            made.try_step(made_states(made, states[:1]), [trouble])  # of an episode that is not played on
        worker, *guards = guarded[int(log.read_text().split()[-1]) if "SIG" not in trouble else max(pids)]
        if "fork" in trouble:
            wait_for(lambda: all(each.status() == psutil.STATUS_ZOMBIE for each in worker.children()), 60)
        else:
            assert psutil.wait_procs([worker, *guards], timeout=60)[1] == []
        states = [made.try_start(tasks(1))[0][0], *states[1:]]
        assert [step.observation for step in made.step(states, ["1"] * 5)] == alone


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("trouble", "workers", "reason"),
    [
        ("exit", 1, "crash: its process ended with exit code 3"),
        ("exit", 2, "crash: its process ended with exit code 3"),
        ("exit", 4, "crash: its process ended with exit code 3"),
        ("SIGKILL", 2, "crash: its process ended with exit code -9"),
        ("SIGSEGV", 2, "crash: its process ended with exit code -11"),
        ("SIGTERM", 2, "crash: its process ended with exit code -15"),
        ("raise", 2, REASONS["raise"]),
        ("leave", 2, REASONS["leave"]),
        ("long", 2, REASONS["long"]),
        ("nan", 2, REASONS["nan"]),
    ],
)
def test_trouble_at_four_percent_of_the_steps_loses_what_failed(tmp_path, trouble, workers, reason):
    """A share of 1 - 0.96^5 = 0.185 fails in its own steps; 0.03 more may fail twice when they are played again."""
    (tmp_path / "trouble").write_text(trouble)
    limits = {"workers": workers, "longest": 1000}
    with closing(ShakySums(str(tmp_path / "log"), target=10**9, limits=limits)) as made:
        running, lost = [state for state, _ in made.try_start(made.sample(80, key("tasks")))], []
        for _ in range(5):
            steps = made.try_step(running, ["1"] * len(running))
            lost += [step for step in steps if isinstance(step, EpisodeFailure)]
            running = [step.state for step in steps if not isinstance(step, EpisodeFailure)]
    assert set(map(without_line, lost)) == {reason}
    assert 0.08 < len(lost) / 80 < 0.33  # 0.185 to 0.215, and 2.5 standard deviations


def test_an_interrupt_leaves_no_answer_for_the_next_call(env, alone):
    states = [state for state, _ in env.try_start(tasks(3))]
    late = Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # the test runner's processes ignore it
    late.start()
    with pytest.raises(KeyboardInterrupt):
        env.try_step(states, ["hang", "hang", "hang"])
    late.join()
    signal.signal(signal.SIGINT, before)
    assert [step.observation for step in env.step(states, ["1"] * 3)] == alone[:3]


def test_an_episode_that_does_not_start_is_lost_alone(env):
    broken = Sums().task("broken", "train")
    first, second = env.try_start([broken, tasks(1)[0]])
    assert (first.kind, without_line(first)) == ("exception", "exception: ValueError: cannot open (simulators.py)")
    assert second[1] == "total 0"
    with pytest.raises(EpisodeLostError, match="exception: ValueError: cannot open"):
        env.start(broken)


@pytest.mark.timeout(60)
def test_an_episode_that_opens_too_slowly_is_lost_alone():
    limits = {"open_seconds": 4.0, "act_seconds": 1.0, "retries": 0, "workers": 2}
    with closing(Sums(limits=limits)) as made:
        slow, sound = made.try_start([Sums().task("slow", "train"), tasks(1)[0]])
        assert slow == EpisodeFailure("timeout", "no answer in 4 s")
        assert sound[1] == "total 0"


@pytest.mark.timeout(60)
def test_a_worker_that_never_reads_a_long_task_exceeds_the_limit_and_a_slow_one_gets_it():
    with closing(HeavySums(600, limits={"open_seconds": 1.0, "retries": 0})) as made:
        assert made.try_start(made.sample(1, key("tasks"))) == [EpisodeFailure("timeout", "no answer in 1 s")]
    with closing(HeavySums(0.5)) as made:
        assert [seen for _, seen in made.try_start(made.sample(3, key("tasks")))] == ["total 0"] * 3


@pytest.mark.timeout(60)
def test_an_episode_that_does_not_close_ends_with_its_process(monkeypatch):
    monkeypatch.setattr(local_workers, "CLOSE_TIMEOUT_S", 0.5)
    before = set(psutil.Process().children(recursive=True))
    with closing(ClingingSums()) as made:
        state, _ = made.start(tasks(1)[0])
        started = set(psutil.Process().children(recursive=True)) - before
        made.release([state])
        assert made.start(tasks(1)[0])[1] == "total 0"
    assert psutil.wait_procs(started, timeout=60)[0]


def test_a_process_that_dies_takes_along_its_live_episodes_that_do_not_repeat():
    with closing(FailingSums(limits={"act_seconds": 50.0, "workers": 1})) as made:
        made.repeats = False
        one, other = (state for state, _ in made.try_start(tasks(2)))
        assert made.try_step([one], ["exit"])[0].kind == "crash"
        assert str(made.try_step([other], ["1"])[0]).startswith("crash: ")


def test_what_fails_while_it_is_opened_is_closed(tmp_path):
    log = tmp_path / "log"
    refused = "invalid: observation = \"['ndarray']\": Input should be a valid string"
    with closing(FailingSums(str(log))) as made:
        openings = [Opening(tasks(1)[0], key("sum"), ("raise",)), Opening(Sums().task("array", "train"), key("sum"))]
        assert list(map(without_line, made.workers.start(openings))) == [
            "exception: RuntimeError: out of order (simulators.py)", refused,
        ]  # fmt: skip
        words = [line.split()[0] for line in log.read_text().splitlines()]
        assert (words.count("open"), words.count("close")) == (4, 4)


def test_coroutines_open_act_and_close_as_functions_do(tmp_path):
    log = tmp_path / "log"
    with closing(LateSums(str(log), limits={"workers": 1})) as late, closing(Sums()) as plain:
        found = played(late, tasks(1)[0], "11")
        assert found == played(plain, tasks(1)[0], "11")
        late.release([found[1]])
        late.start(tasks(1)[0])
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["open", "close", "open", "close"]


def test_what_does_not_repeat_is_found_out_on_a_replay():
    with closing(Clocks()) as clocks:
        state, _ = clocks.start(tasks(1)[0])
        clocks.step([state], ["look"])
        (again,) = clocks.try_step([state], ["look"])
        assert str(again) == "invalid: sums does not repeat: equal actions gave other steps; set repeats = False"


def test_every_episode_is_closed_and_no_process_is_left(tmp_path):
    log = tmp_path / "log"
    with closing(Sums(str(log), target=3, limits={"workers": 2})) as made:
        states = [state for state, _ in made.try_start(tasks(4))]
        made.step(states[:1], ["9"])  # the environment ends it
        made.release(states[1:2])
        dropped = states.pop()
        del dropped  # garbage
        made.release([])
        words = [line.split()[0] for line in log.read_text().splitlines()]
        assert words.count("open") == 4
        assert words.count("close") == 3
    lines = [line.split() for line in log.read_text().splitlines()]
    assert sum(word == "close" for word, _ in lines) == 4
    wait_for(lambda: not any(psutil.pid_exists(int(pid)) for _, pid in lines), 60)


def test_the_parts_of_a_reward_come_back_from_a_worker(tmp_path):
    with closing(ScoredSums(limits={"act_seconds": 10.0})) as env:
        ((state, _),) = env.try_start(tasks(1))
        good, bad, worse = env.try_step([state] * 3, ["1", "nan", "name"])
    assert good.scores == (("exact", 1.0), ("short", 0.5))
    assert str(bad).startswith("invalid: step.scores.0.1 = ")
    assert "is no name" in str(worse)
