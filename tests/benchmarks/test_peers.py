"""The benchmarks against peers: the same prompts and samples for all, and the best of a peer's batch sizes."""

from functools import cache

import pytest
import torch
from support.trainer import LocalTrainer

from benchmarks.speed import group_prompts, rollout_peers
from benchmarks.speed.ratios import compared, spending
from benchmarks.update import padded_updates, update_peers
from coevo.models.policy.policy import save
from coevo.models.trainer.update_batch import read
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError


@cache
def played(*settings, tasks=3, group=4):
    config = group_prompts.configured(*settings)
    policy = group_prompts.untaught(config)
    return policy, group_prompts.play(config, policy, tasks, group)


def test_the_ratio_is_to_the_best_size_round_by_round():
    peers = [{16: (9.0, 9.0), 32: (6.0, 5.0)}, {16: (8.0, 8.0), 32: (8.0, 7.0)}, {16: (9.0, 9.0), 32: (4.0, 4.0)}]
    mine = [(2.0, 1.0), (1.0, 1.0), (2.0, 2.0)]
    found = compared([{"coevo": {0: ours}, "peer": theirs} for ours, theirs in zip(mine, peers, strict=True)], "peer")
    assert found["best"] == 32
    assert found["ratios"] == [3.0, 8.0, 2.0]
    assert (found["ratio"], found["cpu_ratio"]) == (3.0, 5.0)
    assert found["seconds"] == {"16": 9.0, "32": 6.0}


def test_processor_seconds_are_those_of_whoever_works():
    seconds = iter((3.0, 4.5))
    assert spending(lambda: None, lambda: next(seconds))[1] == 1.5


def test_the_policy_has_its_size_and_the_prompts_of_a_group_part():
    policy, batch = played()
    assert 0.75e6 < group_prompts.parameters(policy) < 0.85e6
    told = [turn.prompt_ids for turns in batch.requests for turn in turns]
    assert sorted(told) == sorted(turn.prompt_ids for episode in batch.episodes for turn in episode.turns)
    assert len({request.prompt_ids for request in batch.requests[-1]}) > len({r.group for r in batch.requests[-1]})


def test_more_lessons_make_longer_prompts():
    lengths = [max(map(len, (r.prompt_ids for r in played(*s)[1].requests[0]))) for s in group_prompts.PROMPTS.values()]
    assert lengths[0] < 60
    assert 2 * lengths[0] < lengths[1]


def test_an_answer_ends_with_its_end_token():
    assert rollout_peers.ended([5, 6, 2, 0, 0], [2]) == (5, 6, 2)
    assert rollout_peers.ended([5, 6], [2]) == (5, 6)


@pytest.mark.full
def test_generate_answers_as_the_engine_does_and_other_answers_are_noticed(monkeypatch, tmp_path):
    monkeypatch.setattr(rollout_peers, "SIZES", (5, 64))
    monkeypatch.setattr(rollout_peers, "ROUNDS", 1)
    policy = group_prompts.taught(group_prompts.configured("warmstart.steps=2", "warmstart.probe_tasks=8"), tmp_path)
    found = rollout_peers.beside(group_prompts.configured(*rollout_peers.GREEDY), policy, tasks=3)
    assert found["best"] in rollout_peers.SIZES
    assert found["tokens"] > found["rows"] > found["turns"] > 1
    assert set(found["generate_tokens_per_second"]) == {"5", "64"}
    with pytest.raises(CoevoError, match=r"batches of 16 answers 1 of 2 prompts otherwise"):
        rollout_peers.check_same([[(1, 2), (3,)]], {16: [[(1, 2), (4,)]]})


def test_rows_are_padded_towards_their_middle(tmp_path):
    batch = samples(tmp_path)
    inputs = padded_updates.padded(batch, [0, 5])
    ids, mask, kept = padded_updates.joined(inputs)
    for row, directory in zip((0, 5), range(2), strict=True):
        assert tuple(ids[directory][mask[directory].bool()].tolist()) == batch.prompts[row] + batch.completions[row]
        assert inputs["completion_mask"][directory].sum() == len(batch.completions[row])
    assert kept == max(len(batch.completions[row]) for row in (0, 5))
    assert mask[:, ids.shape[1] - kept].all()


def samples(directory):
    policy, batch = played(tasks=2, group=3)
    save(policy, directory / "policy")
    update_peers.write(directory / "samples.parquet", policy, batch.episodes)
    return read(directory / "samples.parquet")


def test_plain_torch_does_the_update_that_the_trainer_does(tmp_path):
    batch = samples(tmp_path)
    config = group_prompts.configured()
    peers = [padded_updates.Plain(tmp_path, config.update, batch, size) for size in (4, 64)]
    trainer = LocalTrainer(config, tmp_path / "policy")
    for turn in range(3):
        ours = trainer.update(tmp_path / "samples.parquet", key(turn)).metrics["loss"]
        update_peers.check_same({"coevo": ours} | {f"{n}": peer.update(key(turn)) for n, peer in enumerate(peers)})
    assert torch.get_num_threads() == 1


def test_another_update_is_noticed():
    for loss in (0.2, float("nan")):
        with pytest.raises(CoevoError, match=r"the loss of trl 16 is .* not the same update"):
            update_peers.check_same({"coevo": 0.1, "trl 16": loss})


def test_without_trl_a_line_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setattr(padded_updates, "find_spec", lambda name: None)
    with pytest.raises(CoevoError, match=r"pip install 'coevo\[bench\]'"):
        padded_updates.grpo_trainer(tmp_path, group_prompts.configured().update, 16)
