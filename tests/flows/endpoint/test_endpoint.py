"""Requests are checked before a model sees them; hosts by name."""

import asyncio
import socket

import pytest
from starlette.exceptions import HTTPException
from support.endpoint import LARGE, ROW, WRONG, changed, rows

from coevo.flows.endpoint.endpoint_app import question
from coevo.flows.endpoint.origin_guard import Guard, hosts_of
from coevo.flows.endpoint.request_limits import DEFAULT


@pytest.mark.parametrize(("status", "name"), [(422, name) for name in WRONG] + [(413, name) for name in LARGE])
def test_what_is_no_request_is_refused_before_the_model_sees_it(status, name):
    with pytest.raises(HTTPException) as refused:
        question((WRONG | LARGE)[name], DEFAULT)
    assert refused.value.status_code == (422 if "spaces" in name else status)
    assert "\n" not in refused.value.detail


def test_optional_fields_get_the_values_that_stand_for_none():
    full = {**ROW, "scope": "", "kind": "", "task": ROW["instruction"], "history": []}
    turn = {"observation": "a", "action": "b", "feedback": "c"}
    assert question(rows(ROW), DEFAULT) == ([full], {"seed": -1, "logprobs": False})
    assert question(changed(history=[turn], kind=None, task="t"), DEFAULT).rows == [
        {**full, "task": "t", "history": [turn]}
    ]


@pytest.mark.parametrize(
    ("bound", "more", "allowed", "refused"),
    [
        ("127.0.0.1", (), ("127.0.0.1:80", "localhost", "[::1]:5"), ("192.0.2.1", "evil.example", "")),
        ("127.0.0.1", ("Agent.Example",), ("agent.example:80",), ("evil.example", "[::1")),
        ("0.0.0.0", (), ("192.0.2.1:80", "[2001:db8::1]", socket.gethostname()), ("evil.example:80", "1.example")),
    ],
)
def test_a_server_answers_to_its_names_alone(bound, more, allowed, refused):
    hosts = hosts_of(bound, more)
    assert [name for name in allowed if not hosts.allow(name)] == []
    assert [name for name in refused if hosts.allow(name)] == []


NAMES = ("127.0.0.1", "localhost", "[::1]")
AROUND = (
    "a@{}", "a:b@{}", "@{}", "{}@evil.example", "{}/", "{}/evil", "{}?x", "{}#x", "{}.", "{}.evil.example", "evil.{}",
    "{} ", " {}", "{}\t", "{},evil.example", "{};x", "http://{}", "//{}", "{}:", "{}:x", "{}:-1", "{}:65536",
    "{}:999999", "{}:80:80",
    "{}\\x", "{}%00", "%31{}", "{}\x00", "{}\x85", "{}\xa0", "[{}]", "{}]", "[{}", "{}{}", "x{}", "{}x",
)  # fmt: skip
FOREIGN = ("http://evil.example", "null", "", "http://127.0.0.1:1", "ftp://127.0.0.1:80", "127.0.0.1:80", "file://")


def statuses(*headers):
    """Status with which a guard answers a request with these headers; 200 is the application's."""

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def asking():
        said = []

        async def send(message):
            said.append(message)

        pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]
        scope = {"type": "http", "method": "GET", "path": "/ping", "query_string": b"", "headers": pairs}
        await Guard(app, hosts_of("127.0.0.1", ()))(scope, None, send)
        return said[0]["status"]

    return asyncio.run(asking())


@pytest.mark.parametrize("port", ["", ":80"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("around", AROUND)
def test_a_host_with_more_than_a_name_and_a_port_is_refused(around, name, port):
    if port and ":" in around.replace("//", ""):
        around = around.partition(":")[0] + "@" + around
    assert statuses(("host", around.format(name + port, name + port))) == 403


@pytest.mark.parametrize("name", NAMES)
def test_one_host_and_at_most_one_origin_of_it_pass(name):
    own, origin = ("host", f"{name}:80"), ("origin", f"http://{name}:80")
    assert statuses(own) == statuses(own, origin) == 200
    assert statuses(own, ("origin", f"https://{name}:80".upper())) == 200
    assert statuses(own, own) == statuses() == statuses(own, origin, origin) == 403
    for foreign in FOREIGN:
        for pair in ([foreign], [origin[1], foreign], [foreign, origin[1]]):
            if pair != [origin[1]]:
                assert statuses(own, *(("origin", value) for value in pair)) == 403


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"scop": "lotus"}, "scop: no such field. Did you mean 'scope'?"),
        ({"histroy": []}, "Did you mean 'history'?"),
        ({"instructions": "x"}, "Did you mean 'instruction'?"),
        ({"<script>": "x"}, "no such field."),
    ],
)
def test_a_field_that_is_misspelt_is_refused_with_the_nearest_name(field, said):
    with pytest.raises(HTTPException) as refused:
        question(changed(**field), DEFAULT)
    assert said in refused.value.detail
