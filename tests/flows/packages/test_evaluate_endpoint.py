"""Rows that a served agent is asked with."""

from support.player import environment, player

from coevo.flows.packages.evaluate_endpoint import _row
from coevo.records.draws import key
from coevo.tasks.play.attempt import Attempt


def test_a_row_holds_what_the_policy_sees():
    env = environment()
    (task,) = env.sample(1, key("row"))
    (live,) = player().begin([Attempt(task, 0, (), "served", 0, key("row"))])
    row = _row(live)
    assert (row["guide"], row["instruction"], row["observation"]) == (
        env.guide(task).text, task.instruction, live.observation,
    )  # fmt: skip
    assert (row["scope"], row["kind"], row["task"], row["history"]) == (task.scope, task.kind, task.id, [])
