"""Trajectories of messages become candidates: of their scope alone, once, and only where a question was answered."""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.completions import HANGS_UP, completions, refused, said

import coevo
from coevo.tasks.bank_alone.chat_trajectory import TrajectoryFiles, checked_trajectory, episode_of
from coevo.utilities.errors import CoevoError

CALL = {"id": "c1", "type": "function", "function": {"name": "go", "arguments": '{"to": "safe"}'}}
ASKED = {"role": "user", "content": "find the mug"}


def attempt(place="safe", success=True, scope="", **more):
    call = {**CALL, "function": {"name": "go", "arguments": json.dumps({"to": place})}}
    messages = [
        {"role": "system", "content": "You are an agent with a secret lesson."},
        ASKED,
        {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
        {"role": "tool", "tool_call_id": "c1", "content": f"you see the {place}"},
        {"role": "assistant", "content": [{"type": "text", "text": "here it is"}, {"type": "image_url"}]},
        {"role": "user", "content": "thanks" if success else "it is not there"},
    ]
    return coevo.ChatTrajectory(messages, float(success), success, scope, **more)


@pytest.fixture
def bank(tmp_path):
    return coevo.open_bank(tmp_path / "bank")


def settings(url, kind="model-contrast", **model):
    return {"type": kind, "model": {"type": "endpoint", "url": url, "model": "m", "retries": 0, **model}}


def lessons(*texts, **more):
    items = [
        {"lesson": text, "when": "find the mug", "when_not": "", "attempt": 1, "step": 1, **more} for text in texts
    ]
    return said(json.dumps({"first_wrong_step": 0, "lessons": items}))


def test_a_trajectory_is_kept_as_it_was_and_counts_what_it_was_shown(bank, tmp_path):
    (shown,) = bank.add(["the mug is in the safe"], scope={"user": "ann"})
    names = bank.record([attempt(scope={"user": "ann"}, shown=[shown]), attempt("box", success=False)])
    first, second = coevo.open_bank(tmp_path / "bank").trajectories()
    assert [first.id, second.id] == names and (first.scope, second.scope) == ("user=ann", "")
    assert (first.reward, first.success, second.success, first.task) == (1.0, True, False, "find the mug")
    assert first.messages[2] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [attempt().messages[2]["tool_calls"][0]],
    }
    assert first.messages[4] == {"role": "assistant", "content": "here it is\n[image_url]"}
    assert (bank.stats()[shown].retrievals, bank.stats()[shown].successes) == (1, 1)
    assert [(each.action, each.note) for each in bank.history.log()[2:]] == [("record", "2 new attempts")]


def test_an_episode_has_a_turn_for_each_message_of_the_agent(bank):
    bank.record([attempt()])
    episode = episode_of(*bank.trajectories())
    assert [(turn.observation, turn.action, turn.feedback, turn.reward) for turn in episode.turns] == [
        ("", 'go({"to": "safe"})', "", 0.0),
        ("you see the safe", "here it is\n[image_url]", "thanks", 1.0),
    ]
    assert episode.task.instruction == "find the mug" and "secret" not in str(episode)


MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool"]),
        "content": st.none() | st.text(st.characters()),
    },
    optional={"tool_calls": st.just([CALL]), "name": st.text()},
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
)


@given(st.lists(MESSAGE, max_size=5), st.text(max_size=9))
def test_what_is_accepted_can_be_stored_read_back_and_shown(messages, task):
    with TemporaryDirectory() as folder:
        files = TrajectoryFiles(Path(folder))
        try:
            checked = checked_trajectory(coevo.ChatTrajectory(messages, 1, True, "", (), task), "trajectory 0")
        except CoevoError as error:
            assert "\n" not in str(error)
            return
        names = files.write(3, [checked])
        (read,) = files.read(names)
        assert (read, read.id) == (checked, *names) and episode_of(read).reward == 1


@given(JUNK, JUNK, JUNK, JUNK, JUNK)
def test_whatever_is_no_trajectory_is_refused_in_one_line(messages, reward, success, shown, task):
    with pytest.raises(CoevoError) as error:
        checked_trajectory(coevo.ChatTrajectory(messages, reward, success, "", shown, task), "trajectory 0")
    assert "\n" not in str(error.value) and len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ([attempt(shown=["nothing"])], "'nothing' is no active entry"),
        ([attempt(), 3], "trajectory 1: 3 is no trajectory"),
        (attempt(), "is no list"),
        ([coevo.ChatTrajectory([ASKED], 1, True)], "no message is the agent's"),
        ([coevo.ChatTrajectory([ASKED] * 1001, 1, True)], "has 1001 messages"),
        ([coevo.ChatTrajectory([{**ASKED, "content": "a" * 1_000_001}], 1, True)], "shorten them to 1000000"),
        ([coevo.ChatTrajectory([{"role": "assistant", "content": "go"}], 1, True)], "has no task"),
        ([coevo.ChatTrajectory([{"role": "robot", "content": ""}], 1, True)], "messages.0.role: "),
        ([coevo.ChatTrajectory([ASKED], float("nan"), True)], "reward = nan"),
        ([coevo.ChatTrajectory([ASKED], 1, 1)], "success = 1: write True or False"),
        ([attempt(scope={"house": "a"})], "'house' is unknown"),
        ([attempt()] * 1001, "more than 1000 trajectories"),
    ],
)
def test_a_trajectory_that_is_not_acceptable_changes_nothing(bank, given_, text):
    with pytest.raises(CoevoError, match=text):
        bank.record(given_)
    assert len(bank.history.log()) == 1 and bank.trajectories() == []


def test_a_function_writes_each_scope_by_itself_and_once(bank):
    bank.add(["everywhere"])
    bank.add(["of bob"], scope={"user": "bob"})
    bank.record([attempt(scope={"user": user}) for user in ("ann", "bob", "ann")])
    seen = []

    def writer(trajectories, memory):
        seen.append(({each.scope for each in trajectories}, len(trajectories)))
        found = {hit.entry.strategy for scope in ("user=ann", "user=bob") for hit in memory.retrieve("of bob", scope)}
        assert found == ({"of bob"} if trajectories[0].scope == "user=bob" else set())
        return ["the mug is in the safe"]

    report = bank.write(writer)
    assert seen == [({"user=ann"}, 2), ({"user=bob"}, 1)]
    assert (len(report.candidates), report.read) == (2, 3)
    assert {(each.id, each.scope) for each in bank.candidates()} == set(
        zip(report.candidates, ("user=ann", "user=bob"), strict=True)
    )
    assert [len(each.sources) for each in bank.candidates()] == [2, 1]
    assert bank.trajectories() == [] and bank.write(writer) == type(report)() and len(seen) == 2
    for judged in bank.learn(
        lambda memory, lesson, draws: [float(bool(memory.retrieve("mug", lesson.scope)))] * len(draws)
    ):
        assert judged.verdict.admitted
    assert {hit.entry.strategy for hit in bank.retrieve("mug", {"user": "ann"})} == {"the mug is in the safe"}


def test_a_model_at_an_endpoint_writes_from_contrasts_of_one_scope(bank):
    bank.add(["bob keeps his mug in the drawer"], scope="bob")
    bank.add(["ann has two safes"], scope="ann")
    bank.record([attempt(scope="ann"), attempt("box", success=False, scope="ann"), attempt("drawer", scope="bob")])

    def behave(request):
        own = "ann" if "ann has two safes" in request.user else "bob"
        assert ("drawer" in request.user) == (own == "bob")  # neither attempts nor lessons of another scope
        assert "secret lesson" not in request.user
        return lessons("look in the safe first" if own == "ann" else "look in the drawer first", "\u202e", general=True)

    with completions(behave) as (url, requests):
        report = bank.write(settings(url))
    assert len(requests) == 2 and report.unanswered == () and report.read == 3
    assert {(each.strategy, each.scope) for each in bank.candidates()} == {
        ("look in the safe first", "ann"), ("look in the drawer first", "bob"),
    }  # fmt: skip
    assert {reject.reason for reject in report.rejects} == {"control"}
    assert bank.history.log()[-1].note == "2 new candidates from 3 attempts"


@pytest.mark.parametrize("kind", ["model-extremes", "model-reflection", "model-skills"])
def test_whatever_kind_of_writer_a_lesson_stays_in_its_scope(bank, kind):
    bank.record([attempt("box", success=False, scope=scope) for scope in ("ann", "bob")])
    parts = {"subtasks": [{"subtask": "look", "done": True}], "success": False}
    item = {
        "lesson": "find the mug in the safe",
        "when": "",
        "when_not": "",
        "attempt": 1,
        "step": 1,
        "general": True,
        "level": "",
    }
    answer = said(json.dumps({**parts, "first_wrong_step": 1, "lessons": [item]}))
    with completions(lambda _: answer) as (url, _):
        bank.write(settings(url, kind))
    assert {each.scope for each in bank.candidates()} == {"ann", "bob"}


def test_trajectories_of_questions_without_an_answer_wait_on(bank):
    bank.record([attempt(scope="ann"), attempt(scope="bob")])
    heard = []
    with completions(lambda request: refused("no", 400) if request.number else lessons("look in the safe")) as (url, _):
        report = bank.write(settings(url, concurrency=1, constrain="none"), heard.append)
    assert (report.read, len(report.candidates)) == (1, 1)
    assert "the endpoint refuses (400: no" in report.unanswered[0]
    (left,) = bank.trajectories()
    before = bank.revision
    with completions(lambda _: HANGS_UP) as (url, _), pytest.raises(CoevoError, match="no question of the writer"):
        bank.write(settings(url), heard.append)
    assert len(heard) == 2
    assert bank.revision == before and bank.trajectories() == [left]


KILLED = """
import os, signal, sys
import coevo
from coevo.tasks.bank_alone.bank_revisions import BankRevisions
bank = coevo.open_bank(sys.argv[1])
BankRevisions.commit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
bank.write({"type": "model-contrast", "model": {"type": "endpoint", "url": sys.argv[2], "model": "m"}})
"""


def test_a_write_that_is_killed_pays_for_no_answer_twice(bank, tmp_path):
    bank.record([attempt(scope=scope) for scope in ("ann", "bob")])
    with completions(lambda _: lessons("look in the safe")) as (url, requests):
        command = [sys.executable, "-c", KILLED, str(tmp_path / "bank"), url]
        assert subprocess.run(command, check=False).returncode < 0
        assert len(requests) == 2 and len(bank.trajectories()) == 2
        answered = settings(url)
        del answered["model"]["retries"]  # the settings of the killed one
        report = bank.write(answered)
        assert (len(requests), len(report.candidates)) == (2, 2)
        bank.record([attempt(scope="ann")])
        bank.write(answered)
        assert len(requests) == 3  # an answer is used once


PRUNING = """
import os, signal, sys
import coevo
from coevo.tasks.bank_alone import bank_store
bank = coevo.open_bank(sys.argv[1])
bank_store.surplus = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
bank.history.prune(2)
"""


def test_a_prune_that_is_killed_leaves_a_bank_that_can_be_pruned_again(bank, tmp_path):
    for number in range(5):
        bank.add([f"lesson {number}"])
    command = [sys.executable, "-c", PRUNING, str(tmp_path / "bank")]
    assert subprocess.run(command, check=False).returncode < 0
    for reader in (bank, coevo.open_bank(tmp_path / "bank")):
        assert [each.number for each in reader.history.log()] == [4, 5] and len(reader.entries()) == 5
    size = sum(path.stat().st_size for path in (tmp_path / "bank").rglob("*") if path.is_file())
    assert bank.history.prune(2) == 4
    assert sum(path.stat().st_size for path in (tmp_path / "bank").rglob("*") if path.is_file()) < size
    assert len(coevo.open_bank(tmp_path / "bank").history.at(4).entries()) == 4


@pytest.mark.parametrize("damage", [b"", b"[{}]", b"[7]", b"\xff", b'[{"id": "1/alone/x/0"}]'])
def test_a_file_of_trajectories_that_is_damaged_is_one_line(bank, tmp_path, damage):
    bank.record([attempt()])
    path = tmp_path / "bank" / "trajectories" / "00000001.json"
    path.write_bytes(damage)
    for _ in range(2):
        with pytest.raises(CoevoError, match="copy the bank back from a backup") as error:
            bank.trajectories()
        assert "\n" not in str(error.value)
        path.unlink(missing_ok=True)
    assert bank.retrieve("mug") == []  # the rest of the bank can be used


def test_a_revision_that_names_no_trajectories_is_damaged(bank, tmp_path):
    bank.record([attempt()])
    path = tmp_path / "bank" / "revisions" / "00000001.json"
    path.write_text(path.read_text().replace("1/alone/", "../alone/"))
    with pytest.raises(CoevoError, match="is not revision 1 of a bank"):
        coevo.open_bank(tmp_path / "bank")


@pytest.mark.parametrize(
    ("writer", "text"),
    [
        (3, "writer = 3: write a function, or settings"),
        ({"type": "model-editor"}, "choose one of"),
        ({"type": "model-contrast"}, "writer.model.type = policy: a bank alone has neither"),
        (settings("ftp://a"), "is not an address"),
        (settings("http://127.0.0.1:1", key="COEVO_TEST_NO_SUCH"), "the environment has no such variable"),
        (lambda trajectories, memory: "text", "is no list"),
        (lambda trajectories, memory: ["two\nlines"], "control character"),
        (lambda trajectories, memory: [f"lesson {n}" for n in range(1001)], "more than 1000 candidates"),
    ],
)
def test_a_writer_that_is_not_acceptable_changes_nothing(bank, writer, text):
    bank.record([attempt()])
    with pytest.raises(CoevoError, match=re.escape(text)) as error:
        bank.write(writer)
    assert "\n" not in str(error.value) and len(bank.history.log()) == 2 and len(bank.trajectories()) == 1


def test_a_bank_can_be_changed_while_a_writer_writes_and_a_second_writer_is_refused(bank, tmp_path):
    bank.record([attempt()])
    other = coevo.open_bank(tmp_path / "bank")

    def writer(trajectories, memory):
        other.add(["meanwhile"])
        other.record([attempt("box")])
        with pytest.raises(CoevoError, match="another process writes lessons"):
            other.write(writer)
        return ["meanwhile", "new"]

    bank.write(writer)
    assert [each.strategy for each in bank.candidates()] == ["new"]
    assert len(bank.trajectories()) == 1


def test_pruned_revisions_are_gone_and_all_that_is_kept_can_be_read(bank, tmp_path):
    bank.record([attempt()])
    bank.write(lambda trajectories, memory: ["look in the safe"])
    for number in range(6):
        bank.add([f"lesson {number}"])
    bank.record([attempt("box")])
    behind = coevo.open_bank(tmp_path / "bank")
    for number in range(6, 12):
        bank.add([f"lesson {number}"])
    size = sum(path.stat().st_size for path in (tmp_path / "bank").rglob("*") if path.is_file())
    assert bank.history.prune(3) == bank.revision.number - 2
    assert sum(path.stat().st_size for path in (tmp_path / "bank").rglob("*") if path.is_file()) < 0.7 * size
    assert len(behind.entries()) == 12  # the revision that it had read is gone: it is not stale
    for reader in (bank, coevo.open_bank(tmp_path / "bank")):
        assert [len(reader.history.at(each.number).entries()) for each in reader.history.log()] == [10, 11, 12]
        assert [each.messages[2]["tool_calls"][0]["function"]["arguments"] for each in reader.trajectories()] == [
            '{"to": "box"}'
        ]
        with pytest.raises(CoevoError, match="revision 3 was pruned: the first one is 13"):
            reader.history.at(3)
    assert [path.name for path in (tmp_path / "bank" / "trajectories").iterdir()] == ["00000009.json"]
    bank.history.rollback(13)
    assert len(bank.entries()) == 10 and bank.history.prune(1) == bank.revision.number
    assert len(coevo.open_bank(tmp_path / "bank").entries()) == 10
    with pytest.raises(CoevoError, match="keep = 0"):
        bank.history.prune(0)
