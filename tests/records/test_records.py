"""Task identity, panels, and the Arrow round trip."""

from dataclasses import replace
from unicodedata import normalize

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import batches

from coevo.records.arrow import EPISODES, entries_to_table, episodes_to_table, table_to_entries, table_to_episodes
from coevo.records.demonstration import Moment, Note
from coevo.records.entry import MAX_TEXT_CHARS, Entry, Verdict, also_from, entered, entry_id, rescoped, wording
from coevo.records.episode import UNSTAMPED, Completion, Episode, Turn, played
from coevo.records.task import Panel, Task, key_by
from coevo.records.writing import Credit, Drawn, Question, Reply, Rewarded


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


STOPS = (".", "。", "｡", "．", "।", "۔", "។", "။", "።", "։")
QUOTES = ('""', "“”", "„“", "«»", "「」", "｢｣", "＂＂", "〝〞")
_SAID = "heat été Ångström 打开冰箱 がぎ हिन्दी 냉장고 ls -R ﬁne ２"
SAID = _SAID.split()
APOSTROPHES = "'’ʼ＇"


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from(SAID),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["", *STOPS]),
    st.sampled_from(QUOTES),
    st.sampled_from(APOSTROPHES),
    st.sampled_from([" ", "  ", "\t", "\u3000", "\u00a0", " \u2003"]),
    st.sampled_from(["NFC", "NFD"]),
)
def test_spellings_of_a_lesson_have_one_id(words, stop, quotes, apostrophe, blank, form):
    plain = f"""don't say "{words[0]}" {" ".join(words)}"""
    said = f"don{apostrophe}t say {quotes[0]}{words[0]}{quotes[1]} {' '.join(words)}{stop}".replace(" ", blank)
    assert entry_id("s", normalize(form, f"{blank}{said}")) == entry_id("s", plain)
    assert wording(wording(said)) == wording(said)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ls -r", "ls -R"),
        ("x²", "x2"),
        ("ﬁne", "fine"),
        ("ｌｓ", "ls"),
        ("①", "1"),
        ("straße", "strasse"),
        ("cd ..", "cd"),
        ("git add .", "git add"),
        ("ls dir/.", "ls dir/"),
        ("wait...", "wait"),
        ("stop!", "stop"),
        ("e.g", "eg"),
        ("echo '$x'", 'echo "$x"'),
        ("café", "cafe"),
        ("heat mug", "heatmug"),
    ],
)
def test_lessons_of_another_meaning_have_another_id(one, other):
    assert entry_id("s", one) != entry_id("s", other)
    assert entry_id("s", one) != entry_id("t", one)


def test_ids_are_the_first_digits_of_a_hash():
    """Of ``s\\nx``, of the task's fields as compact JSON, and of all that was asked; stored runs have such ids."""
    assert entry_id("s", "x") == entry_id("s", " x.") == "3b653d1d6ed2"
    assert task().id == "d1d3a3717c4790af"
    asked = Question("p", "t", ("e",), "s", "u")
    assert asked.digest == "20f7adb12782869961714d513e42771209283b302df7e2bb5c72b09f8e8bb566"


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


def test_reasons_are_columns_only_where_an_episode_has_one():
    cut, lost = replace(episode(), cut="the context is full"), replace(episode(), lost="timeout: 60 s")
    for some, names in (([cut], ["cut"]), ([episode(), lost], ["lost"]), ([lost, cut], ["cut", "lost"])):
        table = episodes_to_table(some)
        assert table.column_names == [*EPISODES.names, *names]
        assert table_to_episodes(table) == some


def test_a_row_has_the_data_of_its_task_as_canonical_json():
    turned = replace(episode(), task=task(data={"b": [2], "a": 1}))
    assert episodes_to_table([turned]).column("data").to_pylist() == ['{"a": 1, "b": [2]}']


def test_a_turn_and_an_episode_are_plain_unless_more_is_known():
    """No entries, no cluster, no version, no fault; a whole attempt that is over, with neither progress nor shaping."""
    turn = Turn("see", (1,), Completion((3,), (-0.5,), "go x", True), "go x", "x is here", 0.0, True)
    assert (turn.retrieved, turn.cluster_id, turn.version, turn.fault) == ((), -1, UNSTAMPED, "")
    whole = Episode("1/rollout/t/0", task(), 1, 0, (turn,), True, False)
    assert (whole.progress, whole.shaping, whole.start, whole.following) == (None, 0.0, 0, ())
    assert (whole.cut, whole.lost, UNSTAMPED, MAX_TEXT_CHARS) == ("", "", -1, 2000)


@pytest.mark.parametrize(
    ("changes", "usable"),
    [({}, True), ({"action": ""}, False), ({"fault": "cut off"}, False), ({"valid": False}, True)],
)
def test_a_turn_is_usable_with_an_action_that_has_no_fault(changes, usable):
    assert replace(episode().turns[0], **changes).usable is usable


@pytest.mark.parametrize(
    ("changes", "teaches", "counts"),
    [
        ({}, True, True),
        ({"turns": ()}, False, True),
        ({"lost": "timeout: x"}, False, False),
        ({"cut": "the context is full", "success": False}, True, True),
    ],
)
def test_an_episode_teaches_if_the_environment_played_a_turn_of_it(changes, teaches, counts):
    one = replace(episode(), **changes)
    assert one.teaches is teaches
    assert played([one]) == [one] * counts


def test_returns_add_up():
    assert episode().reward == 1.0
    assert episode().shaped == 0.75
    assert episode().with_shaping(0.5).shaped == 1.5


def test_a_later_part_of_an_episode_follows_the_earlier_ones():
    first, second = episode().turns
    earlier = replace(episode(), turns=(first,), shaping=0.5)
    later = replace(episode(), turns=(second,), start=1, success=False)
    assert later.after(earlier) == replace(episode(), turns=(first, second), shaping=0.25, start=0, success=False)


def test_entries_survive_arrow():
    entry = Entry(entry_id("s", "x"), "x", "when", "go x", "s x", "s", "train", ("1/rollout/t/0",), 1, 1)
    assert table_to_entries(entries_to_table([entry])) == [entry]
    assert entry.active


@pytest.mark.parametrize(
    ("difference", "stderr", "delta", "inside"),
    [
        (0.5, 0.0, 0.5, True),
        (0.5, 0.0, -0.054, True),
        (0.5, 0.0, -0.055, False),
        (0.5, 0.0, 0.684, True),
        (0.5, 0.0, 0.685, False),
        (0.5, 0.125, 0.205, True),
        (0.5, 0.125, 0.204, False),
        (0.5, 0.125, 0.795, True),
        (0.5, 0.125, 0.796, False),
    ],
)
def test_a_verdict_is_significant_unless_its_interval_holds_the_threshold(difference, stderr, delta, inside):
    # 0.5 less and plus t(7) * 0.125 = 2.364624 * 0.125 = 0.295578. Eight equal gains: 1 - 0.025^(1/8) = 0.369417 of
    # further ones differ at most, between -1 and 1: from 0.5 - 0.369417 * 1.5 to 0.5 + 0.369417 * 0.5.
    assert Verdict(1, ("a",), True, 0.6, 0.1, difference, stderr, 8, delta).significant is not inside


@pytest.mark.parametrize("scope", ["", "a", "z"])
def test_an_entry_of_another_pool_has_another_id_and_nothing_else_changes(scope):
    one = batches.entry()
    assert rescoped(one, scope) == replace(one, scope=scope, id=entry_id(scope, one.strategy))
    assert rescoped(replace(one, id="edited"), one.scope).id == "edited"


def test_an_entry_gets_sources_once_and_its_revision_when_it_enters():
    one = batches.entry(sources=("b", "a"))
    assert also_from(one, ["c", "a", "c"]) == replace(one, sources=("b", "a", "c"))
    assert entered(one, 7) == replace(one, created=7, edited=7)
    assert Note.of(one) == Note(one.strategy, one.condition, one.example, one.zone)


def test_moments_with_tools_can_be_told_apart_in_a_set():
    tools = ({"name": "search"},), ({"name": "buy"},)
    assert len({Moment("do x", (), (), "see", tools=some) for some in (*tools, tools[0])}) == 2


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


def test_a_reply_counts_no_tokens_and_has_no_fault_unless_given():
    assert Reply("yes", True) == Reply("yes", True, prompt_tokens=0, answer_tokens=0, fault="", drawn=None)


def test_the_parts_of_a_reward_are_a_column_only_where_there_are_some(tmp_path):
    first, second = episode().turns
    scored = replace(episode(), turns=(first, replace(second, scores=(("exact", 1.0), ("short", 0.25)))))
    pq.write_table(episodes_to_table([scored, episode()]), tmp_path / "e.parquet")
    kept = pq.read_table(tmp_path / "e.parquet")
    assert kept.column("scores").to_pylist()[0] == [
        [],
        [{"name": "exact", "value": 1.0}, {"name": "short", "value": 0.25}],
    ]
    assert table_to_episodes(kept) == [scored, episode()]
    assert episodes_to_table([episode()]).schema == EPISODES
