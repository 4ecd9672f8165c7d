"""Task identity, panels, and the Arrow round trip."""

from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from support import batches

from coevo.records.arrow import EPISODES, entries_to_table, episodes_to_table, table_to_entries, table_to_episodes
from coevo.records.entry import Entry, Verdict, entry_id
from coevo.records.episode import Completion, Episode, Turn
from coevo.records.task import Panel, Task, key_by
from coevo.records.writing import Credit, Drawn, Rewarded


def task(**changes):
    return Task(
        **{"env": "e", "kind": "k", "instruction": "do x", "scope": "s", "split": "train", "data": {"a": 1, "b": [2]}}
        | changes
    )


def episode():
    turns = tuple(
        Turn(
            "see", (1, 2), Completion((3, 4), (-0.5, -0.25), "go x", True), "go x", "x is here", float(i), True, ("e1",)
        )
        for i in range(2)
    )
    return Episode("1/rollout/t/0", task(), 1, 0, turns, True, False, 0.5, -0.25)


def test_identity_depends_on_content_not_on_split_or_key_order():
    assert task().id == task(split="panel").id == task(data={"b": [2], "a": 1}).id
    assert (
        len({task().id, task(scope="z").id, task(instruction="do y").id, task(data={"a": 2}).id, task(env="f").id}) == 5
    )


def test_task_data_cannot_be_changed():
    with pytest.raises(TypeError):
        task().data["a"] = 2


def test_panel_hash_depends_on_version_tasks_and_order():
    one, two = task(), task(scope="z")
    hashes = {
        Panel("p", v, ts).hash for v, ts in (("1", (one, two)), ("2", (one, two)), ("1", (two, one)), ("1", (one,)))
    }
    assert len(hashes) == 4


def test_episodes_survive_parquet(tmp_path):
    pq.write_table(episodes_to_table([episode()]), tmp_path / "e.parquet")
    assert table_to_episodes(pq.read_table(tmp_path / "e.parquet")) == [episode()]


def test_versions_are_a_column_only_where_turns_bear_them(tmp_path):
    plain, stamped = episode(), replace(episode(), turns=tuple(replace(t, version=4) for t in episode().turns))
    assert episodes_to_table([plain]).schema == EPISODES
    pq.write_table(episodes_to_table([stamped, plain]), tmp_path / "e.parquet")
    assert pq.read_table(tmp_path / "e.parquet").column("versions").to_pylist() == [[4, 4], [-1, -1]]
    assert table_to_episodes(pq.read_table(tmp_path / "e.parquet")) == [stamped, plain]


def test_faults_are_a_column_only_where_an_answer_has_one(tmp_path):
    first, second = episode().turns
    faulty = replace(episode(), turns=(replace(first, fault="cut off", valid=False), replace(second, version=4)))
    pq.write_table(episodes_to_table([faulty, episode()]), tmp_path / "e.parquet")
    assert pq.read_table(tmp_path / "e.parquet").column("faults").to_pylist() == [["cut off", ""], ["", ""]]
    assert table_to_episodes(pq.read_table(tmp_path / "e.parquet")) == [faulty, episode()]


def test_returns_add_up():
    assert episode().reward == 1.0
    assert episode().shaped == 0.75


def test_a_later_part_of_an_episode_follows_the_earlier_ones():
    first, second = episode().turns
    earlier = replace(episode(), turns=(first,), shaping=0.5)
    later = replace(episode(), turns=(second,), start=1, success=False)
    assert later.after(earlier) == replace(episode(), turns=(first, second), shaping=0.25, start=0, success=False)


def test_entries_survive_arrow():
    entry = Entry(entry_id("s", "x"), "x", "when", "go x", "s x", "s", "train", ("1/rollout/t/0",), 1, 1)
    assert table_to_entries(entries_to_table([entry])) == [entry]
    assert entry.active


def test_verdict_interval_and_noise():
    verdict = Verdict(1, ("a",), True, 0.6, 0.5, 0.1, 0.1, 8, 0.0)
    assert verdict.interval == pytest.approx((-0.096, 0.296))
    assert verdict.inside_noise


@pytest.mark.parametrize(("key", "pool"), [("scope", "lotus"), ("kind", "heat"), ("scope+kind", "lotus/heat")])
def test_a_task_belongs_to_the_pool_of_its_key(key, pool):
    one = task(scope="lotus", kind="heat")
    assert key_by(key)(one) == pool
    assert key_by("task")(one) == one.id


def test_a_new_entry_is_an_active_strategy_until_a_revision_retires_it():
    new = batches.entry()
    assert (new.retired, new.zone, new.level) == (-1, "strategy", "")
    assert new.active
    assert not replace(new, retired=0).active


def test_a_rewarded_answer_has_full_weight_unless_another_is_given():
    assert Rewarded(Drawn((1,), (2, 3)), (Credit(0, 2, 0.5),)).weight == 1.0
