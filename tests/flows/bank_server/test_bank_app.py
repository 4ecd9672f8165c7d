"""The server of a bank: what each token reads and changes, whatever is sent, and beside other processes."""

import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import islice
from pathlib import Path
from random import Random
from time import monotonic
from urllib.parse import urlsplit

import pytest
from support.bank_server import served
from support.endpoint import is_one_line, post, streamed

import coevo
from coevo.flows.bank_server import bank_service
from coevo.tasks.bank_alone.bank_store import MAX_WAITING

ANN, BOB = {"user": "ann"}, {"user": "bob"}
SECRET = {"ann": "the heirloom is behind the clock", "bob": "the ledger is under the floor"}
TALK = [{"role": "user", "content": "find it"}, {"role": "assistant", "content": "looked"}]


@pytest.fixture
def bank(tmp_path):
    bank = coevo.open_bank(tmp_path / "bank")
    bank.add(["knock before you enter"])
    for user, text in SECRET.items():
        bank.add([text], scope={"user": user})
    return bank


@pytest.fixture
def server(bank, tmp_path):
    with served(tmp_path / "bank") as found:
        yield found


def texts(answer):
    return [row["strategy"] for row in answer["lessons"]]


def ids(bank):
    return {entry.scope.removeprefix("user="): entry.id for entry in bank.entries()}


def test_each_name_reads_its_lessons_and_those_for_all(server):
    query = {"query": "knock: where is the heirloom or the ledger"}
    for user, other in (("ann", "bob"), ("bob", "ann")):
        for scope in ({}, {"scope": {}}, {"scope": {"user": user}}):
            status, answer = server.ask("/retrieve", query | scope, user=user)
            assert status == 200 and set(texts(answer)) == {SECRET[user], "knock before you enter"}
        assert server.ask("/retrieve", query | {"scope": {"user": other}}, user=user)[0] == 422
        assert server.ask("/retrieve", query | {"scope": f"user={other}"}, user=user)[0] == 422
        _, all_scopes = server.ask("/retrieve", query | {"scope": {"user": other}})
        assert set(texts(all_scopes)) == {SECRET[other], "knock before you enter"}
    _, narrow = server.ask("/retrieve", query | {"scope": {"task": "t"}, "k": 5}, user="ann")
    assert texts(narrow) == ["knock before you enter"]
    assert texts(server.ask("/retrieve", query | {"k": 1}, user="ann")[1]) != []


def test_what_is_not_found_is_said_without_the_names_of_others(server):
    unknown, unmatched = "the bank has no lesson of this scope", "no lesson of this scope matches the query"
    for user, more, said in (
        ("cleo", {}, unknown),
        ("cleo", {"query": "knock"}, unknown),
        (None, {"scope": {"user": "bbo"}}, unknown),
        (None, {"scope": "user=Bob"}, unknown),
        ("ann", {}, unmatched),
        (None, {"scope": BOB, "query": "xyzzy"}, unmatched),
        (None, {}, "no lesson without a scope matches the query"),
        (None, {"scope": BOB}, ""),
        ("bob", {}, ""),
        (None, {"query": "knock"}, ""),
    ):
        names = {} if user is None else {"user": user}
        answer = server.ask("/retrieve", {"query": "ledger"} | more, **names)[1]
        assert answer["no_lesson"] == said, (user, more)


def test_what_a_name_writes_stands_in_its_scope(server, bank):
    status, answer = server.ask("/propose", {"lessons": ["look up", {"strategy": "look down"}]}, user="ann")
    assert status == 200 and len(answer["candidates"]) == 2
    attempt = {"messages": TALK, "reward": 1, "success": True, "shown": [ids(bank)["ann"]]}
    status, answer = server.ask("/record", {"trajectories": [attempt, attempt | {"scope": {"task": "t"}}]}, user="ann")
    assert (status, answer) == (200, {"recorded": 2})
    assert {each.scope for each in bank.candidates()} == {"user=ann"}
    assert [each.scope for each in bank.trajectories()] == ["user=ann", "user=ann&task=t"]
    report = {"episodes": [{"shown": [ids(bank)["ann"], ids(bank)[""]], "success": False}]}
    assert server.ask("/outcomes", report, user="ann") == (200, {"counted": 1})
    assert (bank.stats()[ids(bank)["ann"]].retrievals, bank.stats()[ids(bank)["ann"]].successes) == (3, 2)


def test_an_entry_of_another_name_is_as_one_that_is_not_there(server, bank):
    before = bank.revision
    said = set()
    for name in (ids(bank)["bob"], "0123456789ab"):
        report = {"episodes": [{"shown": [name], "success": True}]}
        attempt = {"trajectories": [{"messages": TALK, "reward": 1, "success": True, "shown": [name]}]}
        for path, body in (("/outcomes", report), ("/record", attempt)):
            status, answer = server.ask(path, body, user="ann")
            assert status == 422
            said.add(answer["message"].replace(name, "ID"))
    assert len(said) == 1 and bank.revision == before


def test_the_newest_revision_is_served(server, bank):
    bank.add(["the lamp is in the attic"], scope=ANN)
    assert texts(server.ask("/retrieve", {"query": "lamp"}, user="ann")[1]) == ["the lamp is in the attic"]


def test_reports_that_arrive_together_are_counted_each_and_committed_together(server, bank):
    report = {"episodes": [{"shown": [ids(bank)["ann"]], "success": True}]}
    wrong = {"episodes": [{"shown": ["nothing"], "success": True}]}
    before = bank.revision.number
    with ThreadPoolExecutor(16) as clients:
        statuses = list(clients.map(lambda body: server.ask("/outcomes", body, user="ann")[0], [report, wrong] * 24))
    assert statuses == [200, 422] * 24
    assert bank.stats()[ids(bank)["ann"]].retrievals == 24
    assert bank.revision.number - before < 24


@contextmanager
def learning(bank):
    """Let the bank's owner judge a lesson within the block, until the event is set."""
    entered, leave = threading.Event(), threading.Event()

    def replay(memory, lesson, draws):
        entered.set()
        leave.wait(60)
        return [0.0 for _ in draws]

    bank.propose(["slow"])
    with ThreadPoolExecutor(1) as owner:
        judged = owner.submit(bank.learn, replay, 1)
        entered.wait(30)
        try:
            yield leave
        finally:
            leave.set()
        judged.result()


BUSY_LINE = "other changes of this bank come first: try again when they have finished"


def test_while_another_process_changes_the_bank_readers_are_served_and_writers_wait(server, bank, monkeypatch):
    monkeypatch.setattr(bank_service, "BUSY_TIMEOUT_S", 0.2)
    report = {"episodes": [{"shown": [ids(bank)["ann"]], "success": True}]}
    with learning(bank) as leave:
        assert server.ask("/retrieve", {"query": "knock"}, user="ann")[0] == 200
        status, answer = server.ask("/outcomes", report, user="ann")
        assert (status, answer["message"]) == (503, BUSY_LINE)
        monkeypatch.setattr(bank_service, "BUSY_TIMEOUT_S", 30)
        with ThreadPoolExecutor(1) as client:
            waiting = client.submit(server.ask, "/outcomes", report, user="ann")
            leave.set()
            assert waiting.result()[0] == 200
    assert bank.stats()[ids(bank)["ann"]].retrievals == 1


def test_changes_that_arrive_together_wait_together_and_not_one_after_another(server, bank, monkeypatch):
    monkeypatch.setattr(bank_service, "BUSY_TIMEOUT_S", 3.0)
    attempt = {"trajectories": [{"messages": TALK, "reward": 1, "success": True}]}
    requests = [("/propose", {"lessons": ["look up"]}), ("/record", attempt)] * 8
    with learning(bank), ThreadPoolExecutor(len(requests)) as clients:
        start = monotonic()
        statuses = list(clients.map(lambda request: server.ask(*request, user="ann")[0], requests))
        assert set(statuses) == {503} and monotonic() - start < 1.5 * len(requests)


def test_changes_beside_many_that_wait_are_refused_at_once_while_readers_are_served(server, bank, monkeypatch):
    monkeypatch.setattr(bank_service, "BUSY_TIMEOUT_S", 60)
    monkeypatch.setattr(bank_service, "MAX_CHANGES", 3)
    report = {"episodes": [{"shown": [ids(bank)["ann"]], "success": True}]}
    with learning(bank) as leave, ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(server.ask, "/outcomes", report, user="ann") for _ in range(8)]
        try:
            refused = list(islice(as_completed(asked, timeout=20), 5))
            assert server.ask("/retrieve", {"query": "knock"}, user="ann")[0] == 200
        finally:
            leave.set()
        assert [each.result()[0] for each in refused] == [503] * 5
        assert sorted(each.result()[0] for each in asked) == [200] * 3 + [503] * 5
    assert bank.stats()[ids(bank)["ann"]].retrievals == 3


def test_names_take_turns_and_none_has_all_places_that_wait(server, bank, monkeypatch):
    monkeypatch.setattr(bank_service, "BUSY_TIMEOUT_S", 60)
    most, ended = bank_service.MAX_CLIENT_CHANGES, []

    def propose(number, user):
        status = server.ask("/propose", {"lessons": [f"lesson {number}"]}, user=user)[0]
        ended.append((user, status))

    with learning(bank) as leave, ThreadPoolExecutor(2 * most + 2) as clients:
        for user in ("ann", "bob"):  # one is refused once the others wait
            next(as_completed([clients.submit(propose, number, user) for number in range(most + 1)], timeout=60))
        leave.set()
    assert ended[:2] == [("ann", 503), ("bob", 503)]
    assert sorted(ended[2:]) == [("ann", 200)] * most + [("bob", 200)] * most
    assert ended[2 : most + 2].count(("bob", 200)) >= most // 4


def lessons_of(number, first=0):
    return {"lessons": [f"lesson {place}" for place in range(first, first + number)]}


def attempts_of(number, first=0):
    return {"trajectories": [{"messages": TALK, "reward": 1, "success": True}] * number}


@pytest.mark.parametrize(("path", "body"), [("/propose", lessons_of), ("/record", attempts_of)])
def test_one_name_does_not_take_the_waiting_places_of_another(server, bank, path, body):
    most = bank_service.MAX_WAITING
    assert server.ask(path, body(most - 1), user="ann", task="t")[0] == 200
    for names, number in (({"user": "ann"}, 2), ({"user": "ann", "task": "other"}, most + 1)):
        status, answer = server.ask(path, body(number, most), **names)
        assert status == 422 and f"more than {most} " in answer["message"]
    assert server.ask(path, body(1, most), user="ann")[0] == 200
    assert server.ask(path, body(most), user="bob")[0] == 200
    free = MAX_WAITING - len(bank.candidates()) - len(bank.trajectories())
    assert server.ask(path, body(free, most))[0] == 200
    before = bank.revision
    for names in ({"user": "eve"}, {}):
        status, answer = server.ask(path, body(1, MAX_WAITING), **names)
        assert status == 503 and re.search(r"\d", answer["message"]) is None
    assert server.ask(path, body(1, MAX_WAITING), user="ann")[0] == 422 and bank.revision == before
    assert server.ask("/propose", {"lessons": [SECRET["ann"]]}, user="ann") == (200, {"candidates": []})


def test_a_name_reads_lessons_for_all_and_does_not_count_them(server, bank):
    entries = ids(bank)
    episodes = [{"shown": [entries[""], entries["ann"]], "success": False}, {"shown": [entries[""]], "success": False}]
    attempt = {"messages": TALK, "reward": 1, "success": False, "shown": [entries[""]]}
    assert server.ask("/outcomes", {"episodes": episodes * 50}, user="ann") == (200, {"counted": 100})
    assert server.ask("/record", {"trajectories": [attempt]}, user="ann") == (200, {"recorded": 1})
    assert {name: each.retrievals for name, each in bank.stats().items()} == {entries["ann"]: 50}
    assert server.ask("/outcomes", {"episodes": episodes}) == (200, {"counted": 2})
    assert bank.stats()[entries[""]].retrievals == 2


def status_of(server, authorizations):
    """Status of a query with any number of ``Authorization`` headers."""
    body = b'{"query": "a"}'
    connection = HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    connection.putrequest("POST", "/retrieve")
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    for name, value in [*headers, *(("Authorization", value) for value in authorizations)]:
        connection.putheader(name, value)
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


def test_a_request_without_a_token_is_refused_whatever_it_asks_for(server):
    right = server.tokens.token({})
    for path in ("/retrieve", "/outcomes", "/mcp", "/", "/nowhere", "/ping/"):
        for value in ("", "Bearer", "Bearer x", f"Basic {right}", right, f"Bearer x{right}"):
            status, body = post(server.url, b"{}", {"Authorization": value}, path)
            assert status == 401 and is_one_line(body)
    assert status_of(server, [f"Bearer {right}"]) == 200
    assert status_of(server, [f"Bearer {right}", f"Bearer {right}"]) == status_of(server, []) == 401
    assert post(server.url, None, path="/ping", method="GET") == (200, b"\n")
    assert post(server.url, None, {"Host": "evil.example"}, "/ping", "GET")[0] == 403
    assert server.ask("/retrieve", {"query": "a"}, headers={"Origin": "http://evil.example"})[0] == 403


def test_a_body_without_an_end_is_cut(server):
    line = streamed(server.url, (b" " * 2**20 for _ in range(100)))
    assert line.startswith(b"HTTP/1.1 401")  # before any of it is read
    status, answer = server.ask("/retrieve", b'{"query": "' + b"a" * 5 * 2**20 + b'"}')
    assert status == 413 and "more than" in answer["message"]


def test_a_bank_that_is_damaged_is_refused_without_a_word_about_the_machine(server, bank, tmp_path, capfd):
    path = tmp_path / "bank" / "revisions" / f"{bank.revision.number + 1:08d}.json"
    path.write_text("{}")
    status, answer = server.ask("/retrieve", {"query": "a"}, user="ann")
    assert (status, answer["message"]) == (500, "the bank failed: see the server's log")
    assert str(tmp_path) in capfd.readouterr().err


def test_trajectories_that_are_damaged_are_no_mistake_of_the_request(server, bank, tmp_path):
    assert server.ask("/record", attempts_of(1))[0] == 200
    (file,) = (tmp_path / "bank" / "trajectories").glob("*.json")
    file.write_text("[]")
    status, answer = server.ask("/record", attempts_of(1), user="ann")
    assert (status, answer["message"]) == (500, "the bank failed: see the server's log")


def test_a_request_that_names_the_directory_is_refused_as_any_other(bank, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = {"shown": ["bank"], "success": True}
    attempt = {"messages": TALK, "reward": 1, "success": True, "shown": ["bank"]}
    with served(Path("bank")) as server:
        for path, body in (
            ("/retrieve", {"query": "a", "scope": {"bank": "x"}}),
            ("/propose", {"lessons": [{"strategy": "a", "keywords": "bank\n"}]}),
            ("/outcomes", {"episodes": [shown]}),
            ("/record", {"trajectories": [attempt]}),
        ):
            status, answer = server.ask(path, body)
            assert status == 422 and answer["message"] != bank_service.FAILED
        (tmp_path / "bank" / "revisions" / f"{bank.revision.number + 1:08d}.json").write_text("{}")
        assert server.ask("/outcomes", {"episodes": [shown]})[1]["message"] == bank_service.FAILED


VALID = {
    "/retrieve": {"query": "where is it", "scope": {"user": "ann"}, "k": 3},
    "/outcomes": {"episodes": [{"shown": [], "success": True}]},
    "/propose": {"lessons": [{"strategy": "look", "condition": "now"}], "scope": {"user": "ann"}},
    "/record": {"trajectories": [{"messages": TALK, "reward": 0.5, "success": True, "scope": {"user": "ann"}}]},
}
POISON = (
    None, -1, 1.5, 10**400, True, "", "\u202e", "a\nb", "x" * 30_000, [], [[]], {}, {"user": "bob"}, "user=bob",
    [None], {"$ref": "#"}, "../../etc/passwd", "'; DROP TABLE entries; --", float("nan"), "\x00",
)  # fmt: skip


def poisoned(value, draw):
    """A JSON value in which one place holds something else."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        key = draw.choice(list(value))
        if draw.random() < 0.2:
            return {name: each for name, each in value.items() if name != key} | {draw.choice(["x", "id", ""]): 1}
        return value | {key: poisoned(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        return [poisoned(each, draw) for each in value] * draw.choice([1, 1, 1, 1001])
    return draw.choice(POISON)


def attack(number, entries):
    """Path, body, headers and method of a malformed request."""
    draw = Random(f"attack/{number}")
    path = draw.choice(list(VALID))
    body = json.dumps(poisoned(VALID[path], draw)).encode()
    headers, method = {}, "POST"
    match draw.randrange(8):
        case 0:
            body = body[: draw.randrange(len(body))]
        case 1:
            body = draw.randbytes(draw.randrange(200))
        case 2:
            body = b"[" * draw.choice([10, 1000, 100_000]) + body
        case 3:
            headers = draw.choice(
                [{"Content-Type": "text/plain"}, {"Content-Type": ""}, {"Accept": "*", "Host": "a.b"}]
            )
        case 4:
            path, method = draw.choice([("/retrieve", "PUT"), ("/" + "a" * 3000, "POST"), ("/../secret", "GET")])
        case 5:
            shown = {"shown": [entries["bob"]], "success": True}
            path, body = "/outcomes", json.dumps({"episodes": [shown] * draw.choice([1, 2])}).encode()
        case 6:
            scope = draw.choice(
                [BOB, "user=bob", {"user": "ann&user=bob"}, {"user": "bob", "agent": "x"}, {"user": ["bob"]}]
            )
            body = json.dumps(VALID[path] | {"query": "ledger", "scope": scope}).encode()
    return path, body, headers, method


def test_200_malformed_requests_of_one_name_learn_and_change_nothing_of_another(server, bank, tmp_path):
    entries, statuses = ids(bank), []
    before = {entry.id for entry in bank.entries()}
    token = {"Authorization": f"Bearer {server.tokens.token(ANN)}"}
    for number in range(200):
        path, body, headers, method = attack(number, entries)
        status, answer = post(server.url, body, token | headers, path, method)
        statuses.append(status)
        text = answer.decode().replace(f"'{entries['bob']}'", "")  # what was asked for may be repeated
        assert "ledger is" not in text and entries["bob"] not in text and str(tmp_path) not in text
        assert status < 500 and "\n" not in text and "Traceback" not in text, (number, status, text)
        assert status == 200 or 0 < len(json.loads(answer)["message"]) <= 300
    assert sum(status != 200 for status in statuses) >= 150
    assert {entry.id for entry in bank.entries()} == before and entries["bob"] not in bank.stats()
    assert {entry.scope for entry in bank.candidates()} <= {"user=ann"}
    assert {each.scope for each in bank.trajectories()} <= {"user=ann"}
    assert texts(server.ask("/retrieve", {"query": "ledger"}, user="bob")[1]) == [SECRET["bob"]]
