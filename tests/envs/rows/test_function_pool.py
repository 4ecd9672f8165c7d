"""Rewards that are awaited together or called once for a batch: each item fails by itself where it can."""

import time
from contextlib import closing
from threading import Thread

import pytest
from support import row_functions
from support.row_tables import configured, rated

from coevo.envs.failures import EpisodeFailure
from coevo.envs.rows.function_pool import FunctionCalls, FunctionPool

ROW = {"prompt": "a", "answer": "b"}


def outcomes(reward, answers, workers=2):
    """Value, or failure, of each answer."""
    (callee,) = configured("rows.jsonl", reward).reward
    with closing(FunctionPool([callee], 1.0, workers)) as pool:
        (found,) = pool.call([FunctionCalls(callee, [(answer, ROW) for answer in answers])])
    return [str(each) if isinstance(each, EpisodeFailure) else each.value for each in found]


def test_coroutines_are_awaited_together():
    assert outcomes(rated("meets", call="async"), ["x"] * 10) == [1.0] * 10


def test_each_coroutine_has_its_own_time_and_its_own_failure():
    found = outcomes(rated("slow", call="async", seconds=3), ["a", "hang", "raise", "b"])
    assert [found[0], found[3]] == [1.0, 1.0]
    assert found[1] == "timeout: no value in 3 s"
    assert found[2].startswith("exception: ValueError: not this one (row_functions.py:")


def test_a_coroutine_that_blocks_is_stopped():
    since = time.monotonic()
    assert outcomes(rated("blocks", call="async", seconds=0.5), ["a"]) == ["timeout: no answer in 1.5 s"]
    assert time.monotonic() - since < 50


def test_a_batched_function_gets_all_answers_at_once():
    assert outcomes(rated("share", call="batched"), ["ab", "abcd", "a"]) == [0.5, 1.0, 0.25]
    assert outcomes(rated("share", call="batched"), []) == []


def test_a_list_of_another_length_loses_the_batch_and_a_wrong_value_only_its_item():
    lost = outcomes(rated("lacks_one", call="batched"), ["a", "b"])
    assert lost == [lost[0]] * 2
    assert lost[0].startswith("exception: TypeError: it returned a list of 1 for 2 answers, not a list")
    found = outcomes(rated("some_are_wrong", call="batched"), ["a", "text", "b"])
    assert found == [1.0, "invalid: it returned '1', a str, not a number", 1.0]


@pytest.mark.parametrize("name", ["truth", "numpy_truth", "tensor"])
def test_a_truth_value_or_a_scalar_of_numpy_is_a_number(name):
    assert outcomes(rated(name), ["b", "c"]) == [1.0, 0.0]


def test_calls_are_made_side_by_side_in_as_many_processes_as_there_may_be():
    assert len(set(outcomes(rated("pid"), ["x"] * 12, workers=3))) == 3


def test_several_threads_may_call_at_once():
    (callee,) = configured("rows.jsonl", rated("moody", seconds=5.0)).reward
    found = {}
    with closing(FunctionPool([callee], 5.0, 2)) as pool:

        def ask(number):
            answers = ["fine", "hang" if number == 0 else "fine", "die" if number == 1 else "fine"] * 2
            found[number] = pool.call([FunctionCalls(callee, [(answer, ROW) for answer in answers])])[0]

        threads = [Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    kinds = {
        number: [getattr(each, "kind", "") if isinstance(each, EpisodeFailure) else "" for each in found[number]]
        for number in found
    }
    assert kinds == {0: ["", "timeout", ""] * 2, 1: ["", "", "crash"] * 2, 2: [""] * 6, 3: [""] * 6}


def test_a_module_that_workers_cannot_import_is_named(monkeypatch):
    (callee,) = configured("rows.jsonl", {"function": "only_here:exact"}).reward
    monkeypatch.setitem(__import__("sys").modules, "only_here", row_functions)
    with closing(FunctionPool([callee], 1.0, 1)) as pool:
        (found,) = pool.call([FunctionCalls(callee, [("a", ROW)])])
    assert str(found[0]).startswith("exception: its worker does not start: ConfigError: env.reward = 'only_here:exact'")


@pytest.mark.parametrize("seconds", [0.3, 0.6])
def test_each_function_has_its_own_limit(seconds):
    assert outcomes(rated("moody", seconds=seconds), ["hang"]) == [f"timeout: no answer in {seconds:g} s"]
