"""Gates on episodes and advantages: each rule catches its own kind of broken row, and says which."""

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.batches import batch, episode, task, turn

from coevo.models.advantages.trajectory import Advantages
from coevo.records.arrow import table_to_episodes
from coevo.records.episode import Completion
from coevo.tasks.gates.episodes import REMEDIES, EpisodeLimits, check_advantages, check_episodes
from coevo.tasks.gates.frame_gate import GateError

LIMITS = EpisodeLimits(group_size=4, reward_range=(0.0, 1.0), max_new_tokens=12, max_positions=256)


def of(values, centred=True):
    return Advantages(values, [np.full(2, value) for value in values], np.ones(len(values), dtype=bool), centred)


def with_turn(broken):
    """A batch whose second episode has a broken second turn."""
    episodes = batch()
    episodes[1] = replace(episodes[1], turns=(turn(), broken))
    return episodes


def with_completion(tokens, logprobs):
    return with_turn(turn(completion=Completion(tokens, logprobs, "go x", True)))


def with_task(number, split):
    return [*batch(1), *(episode(number, replica, split=split) for replica in range(4))]


BROKEN = {
    "positive log-prob": (with_completion((7, 8), (-0.5, 0.25)), "column='top_logprob'", "1 of 16 turns"),
    "NaN log-prob": (with_completion((7, 8), (-0.5, math.nan)), "column='finite_logprobs'", "1 of 16 turns"),
    "infinite log-prob": (with_completion((7, 8), (-math.inf, -1.0)), "column='finite_logprobs'", "1 of 16 turns"),
    "log-prob missing": (with_completion((7, 8), (-0.5,)), "column_B='logprobs'", "1 of 16 turns"),
    "no tokens": (with_completion((), ()), "column='completion'", "1 of 16 turns"),
    "too many tokens": (with_turn(turn(tokens=13)), "column='completion'", "1 of 16 turns"),
    "empty prompt": (with_turn(turn(prompt=0)), "column='prompt'", "1 of 16 turns"),
    "beyond the positions": (with_turn(turn(prompt=250)), "column='sequence'", "1 of 16 turns"),
    "reward out of bounds": (with_turn(turn(reward=1.5)), "column='reward'", "1 of 8 episodes"),
    "reward not a number": (with_turn(turn(reward=math.nan)), "not_be_null(column='reward')", "1 of 8 episodes"),
    "incomplete group": (batch()[:-1], "column='group_size'", "3 of 7 episodes"),
    "an episode twice": ([*batch(), batch()[0]], "be_unique(column='episode')", "2 of 9 episodes"),
    "no turns": ([*batch()[:-1], episode(1, 3, ())], "column='played'", "1 of 8 episodes"),
    "evaluation split": (with_task(1, "seen-houses"), "column='split'", "4 of 8 episodes"),
    "panel task": (with_task(9, "train"), "column='held_out'", "4 of 8 episodes"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_batch_is_quarantined_and_named(name, tmp_path):
    episodes, expectation, count = BROKEN[name]
    limits = replace(LIMITS, held_out=frozenset({task(9).id}))
    with pytest.raises(GateError) as caught:
        check_episodes(episodes, limits, tmp_path / "quarantine")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("gate episodes: expect_column_")
    assert expectation in message
    assert count in message
    assert "for example episode='1/rollout/" in message
    assert message.endswith(str(tmp_path / "quarantine" / "episodes-1"))
    # What an environment decides has its remedy.
    assert all((f": {remedy};" in message) == (f"column='{of}'" in expectation) for of, remedy in REMEDIES.items())


def test_the_sample_is_the_broken_row_and_the_batch_is_kept_whole(tmp_path):
    episodes = with_completion((7, 8), (-0.5, 0.25))
    with pytest.raises(GateError, match=f"episode='{episodes[1].id}', turn='1'.*top_logprob='0.25'"):
        check_episodes(episodes, LIMITS, tmp_path)
    folder = tmp_path / "episodes-1"
    assert {path.name for path in folder.iterdir()} == {"batch.parquet", "turns.json"}
    assert table_to_episodes(pq.read_table(folder / "batch.parquet")) == episodes
    result = json.loads((folder / "turns.json").read_text())
    assert result["statistics"]["unsuccessful_expectations"] == 1


def test_a_sound_batch_passes_silently_and_writes_nothing(tmp_path, capfd):
    check_episodes(batch(), LIMITS, tmp_path / "quarantine")
    check_advantages(batch(), of(np.tile([-1.0, 1.0], 4)), tmp_path / "quarantine")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_quarantined_batches_do_not_overwrite_one_another(tmp_path):
    for number in (1, 2):
        with pytest.raises(GateError, match=f"episodes-{number}$"):
            check_episodes(batch()[:-1], LIMITS, tmp_path)


def test_group_relative_advantages_are_centred(tmp_path):
    shifted = np.tile([-1.0, 1.0], 4) + np.repeat([0.0, 1e-3], 4)
    with pytest.raises(GateError, match=r"gate advantages: .*column='group_mean'.*4 of 8 episodes"):
        check_advantages(batch(), of(shifted), tmp_path)
    check_advantages(batch(), of(shifted, centred=False), tmp_path)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_advantages_are_finite_whatever_the_estimator(value, tmp_path):
    advantages = of(np.zeros(8))
    advantages.tokens[0][1] = value
    for centred in (True, False):
        with pytest.raises(GateError, match=r"column='finite'.*1 of 8 episodes"):
            check_advantages(batch(), replace(advantages, centred=centred), tmp_path)


def test_a_policy_without_log_probs_passes_with_answers_of_any_length(tmp_path):
    episodes = with_completion((1,) * 40, ())
    with pytest.raises(GateError):
        check_episodes(episodes, LIMITS, tmp_path)
    check_episodes(episodes, replace(LIMITS, known=False), tmp_path)
    with pytest.raises(GateError):
        check_episodes(with_completion((), ()), replace(LIMITS, known=False), tmp_path)
