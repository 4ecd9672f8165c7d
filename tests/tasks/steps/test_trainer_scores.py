"""Scores come back to the tokens of their episodes."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.batches import episode, turn

from coevo.configs.update.update_config import UpdateConfig
from coevo.models.losses.policy_loss import kl_penalties
from coevo.models.trainer.samples import Scores, read_scores, write_scores
from coevo.tasks.steps.policy_steps import score

EPISODES = [episode(0, 0, (turn(tokens=2), turn(tokens=1))), episode(0, 1, (turn(tokens=3),))]
REWARD = {"kl_in": "reward", "kl": "k1", "kl_coefficient": 0.5}


class Counting:
    """Answers as the trainer does: the running number of each token as value, -1 as its reference log-prob."""

    def __init__(self, config):
        self.config = config
        self.asked = 0

    def score(self, batch, into):
        self.asked += 1
        lengths = [len(ids) for ids in pq.read_table(batch)["token_ids"].to_pylist()]
        ends = np.cumsum(lengths)[:-1]
        values = np.split(np.arange(float(sum(lengths))), ends) if self.config.critic else []
        reference = np.split(np.full(sum(lengths), -1.0), ends) if self.config.loss.kl_in == "reward" else []
        write_scores(into, Scores(reference, values), len(lengths))
        return read_scores(into)


def scored(tmp_path, episodes=EPISODES, **settings):
    config = UpdateConfig.model_validate(settings)
    trainer = Counting(config)
    paths = SimpleNamespace(scratch=tmp_path / "scratch")
    session = SimpleNamespace(
        config=SimpleNamespace(update=config, placement=None),
        parts=SimpleNamespace(trainer=trainer, worker=SimpleNamespace(engine=None)),
        stores=SimpleNamespace(paths=paths),
    )
    return score(session, episodes), trainer


def test_values_and_penalties_of_every_token(tmp_path):
    scores, _ = scored(tmp_path, advantage={"type": "gae"}, critic={}, loss=REWARD)
    assert [each.values.tolist() for each in scores] == [[0, 1, 2], [3, 4, 5]]
    # Drawn with log-prob -0.5: k1 is -0.5 - (-1) = 0.5.
    assert [each.penalties.tolist() for each in scores] == [pytest.approx([0.25] * 3)] * 2
    assert kl_penalties([-0.5], [-1.0], UpdateConfig.model_validate({"loss": REWARD}).loss).tolist() == [0.25]


def test_what_follows_an_episode_that_goes_on_is_valued_and_what_follows_its_end_is_nothing(tmp_path):
    going_on = [replace(EPISODES[0], following=(1, 2)), EPISODES[1], replace(EPISODES[1], start=4, following=(3,))]
    scores, _ = scored(tmp_path, going_on, advantage={"type": "gae"}, critic={}, loss=REWARD)
    assert [each.values.tolist() for each in scores] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert [each.bootstrap for each in scores] == [9.0, 0.0, 10.0]
    assert [len(each.penalties) for each in scores] == [3, 3, 3]
    rows = pq.read_table(tmp_path / "scratch/turns.parquet").to_pylist()
    assert [(row["prompt_ids"], len(row["token_ids"]), row["turn"]) for row in rows[-2:]] == [
        ([1, 2], 1, 2),
        ([3], 1, 5),
    ]
    assert [row["turn"] for row in rows[:-2]] == [0, 1, 0, 4]


@pytest.mark.parametrize(
    ("settings", "values", "penalties"),
    [({"advantage": {"type": "gae"}, "critic": {}}, 3, 0), ({"loss": REWARD}, 0, 3)],
)
def test_only_what_is_needed_is_there(tmp_path, settings, values, penalties):
    first = scored(tmp_path, **settings)[0][0]
    assert (len(first.values), len(first.penalties)) == (values, penalties)


def test_the_trainer_is_not_asked_for_nothing(tmp_path):
    scores, trainer = scored(tmp_path)
    assert trainer.asked == 0
    assert [len(each.values) for each in scores] == [0, 0]
