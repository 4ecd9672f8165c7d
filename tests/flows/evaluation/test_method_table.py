"""Tables of methods: values and intervals worked out in another way, and the rows that no table is without."""

import math
from functools import cache

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coevo.configs.load.load import load_recipe
from coevo.configs.load.pairing import Pairing, load_pairing
from coevo.flows.evaluation.method_table import ScoredPanel, TaskScore, baseline_command, method_table
from coevo.utilities.errors import CoevoError

KINDS = ("heat", "put", "look")
METHODS = ("slea-rl", "grpo", "experience-only")


@cache
def config(method, seed, model="qwen2.5-7b", more=()):
    return load_pairing(Pairing("webshop", method, model), [f"seed={seed}", *more])


def played(method, seed, tasks, samples=1, bank="own", model="qwen2.5-7b", more=(), digest="p"):
    """A panel; ``tasks`` has a kind, and the samples' success, return and length, for each task."""
    columns = [(kind, *map(tuple, zip(*each, strict=True))) for kind, each in tasks]
    scores = {str(number): TaskScore(*each) for number, each in enumerate(columns)}
    name = f"{method}-{seed}@1"
    return ScoredPanel(name, config(method, seed, model, tuple(more)), bank, "held-out", digest * 64, samples, scores)


def plain(method, seed, marks="10", **more):
    return played(method, seed, [("heat", [(mark == "1", float(mark), 3)]) for mark in marks], **more)


def beside(*seeds):
    return [plain(method, seed) for method in METHODS[1:] for seed in seeds]


def one(samples):
    episode = st.tuples(st.booleans(), st.floats(-10, 10).map(lambda each: round(each, 3)), st.integers(1, 50))
    return st.tuples(st.sampled_from(KINDS), st.lists(episode, min_size=samples, max_size=samples))


def panels(samples):
    return st.lists(one(samples), min_size=3, max_size=6)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(2, 4))
def test_every_figure_is_that_of_another_computation(data, samples, count):
    sources, frames = [], []
    for method in METHODS:
        for seed in range(count):
            tasks = [(kind, each) for kind, (_, each) in zip(KINDS * 2, data.draw(panels(samples)), strict=False)]
            sources.append(played(method, seed, tasks, samples))
            names = ("success", "score", "length")
            frames += [
                {"method": method, "seed": seed, "task": number, "kind": kind} | dict(zip(names, each, strict=True))
                for number, (kind, samples_of) in enumerate(tasks)
                for each in samples_of
            ]
    episodes = pd.DataFrame(frames)
    table = method_table(sources)
    assert [row.method for row in table.rows] == ["grpo", "experience-only", "slea-rl"]
    for row in table.rows:
        own = episodes[episodes.method == row.method]
        tasks = own.groupby(["seed", "kind", "task"])[["success", "score", "length"]].mean()
        seeds = tasks.groupby("seed").mean() * [100, 100, 1]
        kinds = (100 * tasks.success.groupby(["kind", "seed"]).mean()).unstack()
        cells = row.cells()
        for name, values in [*seeds.items(), *((f"kind/{kind}", each) for kind, each in kinds.iterrows())]:
            if name in cells:
                assert cells[name]["mean"] == pytest.approx(values.mean(), abs=1e-9)
                if cells[name]["low"] is None:
                    assert values.max() - values.min() < 1e-9
                    continue
                half = stats.t.ppf(0.975, count - 1) * values.std(ddof=1) / math.sqrt(count)
                assert (cells[name]["high"] - cells[name]["low"]) / 2 == pytest.approx(half, abs=1e-6)
        if samples > 1:  # of all samples, one succeeds
            solved = own.groupby(["seed", "task"]).success.any().groupby("seed").mean()
            assert row.values["pass"] == pytest.approx(tuple(100 * solved))


def test_a_hand_worked_table():
    """Success 50, 100 and 75: t of 2 degrees is 4.3027, the deviation 25."""
    table = method_table([*beside(1, 2, 3), *(plain("slea-rl", seed, marks) for seed, marks in
                          ((1, "1010"), (2, "1111"), (3, "1011")))])  # fmt: skip
    grpo, frozen, slea = table.rows
    half = 4.302653 * 25 / math.sqrt(3)
    assert slea.cells()["success"] == pytest.approx({"mean": 75.0, "low": 75 - half, "high": 75 + half})
    assert (grpo.role, frozen.role, slea.role) == ("no memory", "frozen with a bank", None)
    assert grpo.cells()["success"] == pytest.approx({"mean": 50.0, "low": None, "high": None})
    minus = [(each["against"], each["mean"], each["seeds"]) for each in table.differences()]
    assert minus == [("grpo", 25.0, 3), ("experience-only", 25.0, 3)]
    assert table.kinds == []  # all of one


def test_an_interval_is_over_seeds_and_never_over_tasks():
    """With ten times the tasks of the same outcomes nothing is surer."""
    few, many = ([*beside(1, 2), *(plain("slea-rl", seed, marks * times) for seed, marks in ((1, "10"), (2, "11")))]
                 for times in (1, 10))  # fmt: skip
    assert method_table(few).rows[2].cells() == method_table(many).rows[2].cells()


def test_one_seed_has_no_interval_and_the_table_says_so():
    table = method_table([*beside(1), plain("slea-rl", 1)])
    assert table.rows[2].cells()["success"] == {"mean": 50.0, "low": None, "high": None}
    assert table.notes[0] == "no interval over seeds, which one run has not: grpo, experience-only, slea-rl"


def test_differences_are_over_the_seeds_that_both_have():
    table = method_table([*beside(1, 2), *(plain("slea-rl", seed, "11") for seed in (1, 2, 3))])
    assert [each["seeds"] for each in table.differences()] == [2, 2]
    assert "grpo has no run of slea-rl's seeds 3: differences are over the others" in table.notes


COMMAND = "coevo run --env webshop --method {} --model qwen2.5-7b seed=7"


@pytest.mark.parametrize("left", [(), ("grpo",), ("experience-only",)])
def test_a_table_without_the_rows_beside_a_method_is_refused_with_the_commands(left):
    with pytest.raises(CoevoError) as error:
        method_table([plain("slea-rl", 7), *(plain(method, 7) for method in left)])
    for method in METHODS[1:]:
        assert (COMMAND.format(method) in str(error.value)) == (method not in left)


def test_differences_that_rounding_alone_tells_apart_have_no_interval():
    """120 - 107 and 23 - 10 of 192 tasks are both 13, and differ as floating-point numbers."""
    solved = {"grpo": (107, 10), "experience-only": (107, 10), "slea-rl": (120, 23)}
    panels = [plain(m, s, "1" * n + "0" * (192 - n)) for m, each in solved.items() for s, n in enumerate(each)]
    assert {(each["low"], each["high"]) for each in method_table(panels).differences()} == {(None, None)}


def test_grpo_with_the_bank_of_another_run_is_no_row_without_memory():
    helped = plain("grpo", 1, bank="slea-1@5")
    with pytest.raises(CoevoError, match="GRPO without a bank: coevo run"):
        method_table([helped, plain("experience-only", 1), plain("slea-rl", 1)])


def test_each_model_needs_rows_of_its_own():
    with pytest.raises(CoevoError, match=r"--method grpo --model qwen2\.5-1\.5b seed=1.*--method experience-only"):
        method_table([*beside(1), plain("slea-rl", 1), plain("slea-rl", 1, model="qwen2.5-1.5b")])


def test_a_bank_left_out_at_test_time_is_a_row_of_its_own_and_stands_for_no_baseline():
    frozen = plain("experience-only", 1, bank="none")
    with pytest.raises(CoevoError, match="a frozen policy with a bank: coevo run"):
        method_table([plain("grpo", 1), frozen])
    table = method_table([*beside(1), frozen])
    assert [row.method for row in table.rows] == ["grpo", "experience-only", "experience-only, bank none"]


def test_rows_of_one_method_name_what_differs():
    table = method_table([*beside(1), *(plain("slea-rl", 1, more=[f"bank.retrieval.k={k}"]) for k in (2, 4))])
    assert [row.method for row in table.rows][2:] == ["slea-rl bank.retrieval.k=2", "slea-rl bank.retrieval.k=4"]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"samples": 2}, "has samples 1, and slea-rl-1@1 2: make a table of each"),
        ({"digest": "q"}, "grpo-1@1 and slea-rl-1@1 play other tasks of held-out"),
        ({"marks": ""}, "slea-rl-1@1: the environment lost all episodes"),
    ],
)
def test_what_cannot_be_compared_is_one_line(more, says):
    with pytest.raises(CoevoError) as error:
        method_table([*beside(1), plain("slea-rl", 1, **more)])
    assert says in str(error.value)


def test_a_seed_counts_once():
    with pytest.raises(CoevoError, match="grpo-1@1 and grpo-1@1 are the same method and seed"):
        method_table([*beside(1), plain("grpo", 1)])


@pytest.mark.parametrize(
    ("run", "role", "command"),
    [
        (load_recipe("homerules-coevo-rl", ["seed=3"]), "no memory", "coevo run homerules-grpo seed=3"),
        (load_recipe("homerules-coevo-rl", ["env.world=2"]), "frozen with a bank",
         "coevo run homerules-experience-only seed=0 env.world=2"),
        (load_recipe("homerules-slea-rl-qwen2.5-7b"), "no memory",
         "coevo run --env homerules --method grpo --model Qwen/Qwen2.5-7B-Instruct seed=0 env.level=2"),
        (config("slea-rl", 0, more=("env.products=300",)), "frozen with a bank",
         "coevo run --env webshop --method experience-only --model qwen2.5-7b seed=0 env.products=300"),
    ],
)  # fmt: skip
def test_the_command_plays_the_same_panel_with_the_same_model(run, role, command):
    assert baseline_command(run, "seen-houses", role).startswith(command)


def test_a_model_behind_an_endpoint_has_a_command_for_the_frozen_row_and_none_that_trains():
    run = load_pairing(Pairing("webshop", "react", "http://127.0.0.1:9/v1"), ["policy.model=small"])
    frozen = "coevo run --env webshop --method experience-only --model http://127.0.0.1:9/v1 policy.model=small seed=0"
    assert baseline_command(run, "held-out", "frozen with a bank").startswith(frozen)
    assert baseline_command(run, "held-out", "no memory").startswith("none, a model behind an endpoint is not trained")
