"""The guard lets nothing through that comes from elsewhere or lacks the secret; what it lets through has it."""

import asyncio
import re
from base64 import b64encode

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse

from coevo.flows.servers.guard import ServerGuard
from coevo.flows.servers.server_secret import health_of
from coevo.flows.servers.visits import LINKS

PORT = 4321
HERE = f"http://127.0.0.1:{PORT}"
SECRET = "user:swordfish"
HAVING_IT = {"Authorization": "Basic " + b64encode(SECRET.encode()).decode()}
COOKIE = f"coevo-{PORT}"


@pytest.fixture
def reached():
    """The ``Authorization`` of what came through."""
    return []


@pytest.fixture
def ask(reached):
    """Ask the guard, as a browser without cookies."""

    async def app(scope, receive, send):
        reached.append(Request(scope).headers.get("authorization"))
        await JSONResponse("through")(scope, receive, send)

    async def asking(method, path, headers):
        transport = httpx.ASGITransport(app=guard)
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            return await client.request(method, path, headers=headers)

    guard = ServerGuard(app, PORT, SECRET)

    def call(method, path, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return asyncio.run(asking(method, path, named))

    return call


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", "", f"LOCALHOST:{PORT}",
        f"localhost.:{PORT}", f"127.0.0.1:{PORT}@evil.example", f"evil@127.0.0.1:{PORT}", f"127.1:{PORT}",
        f"[::1]:{PORT}", f"127.0.0.1:0{PORT}", f"127.0.0.1:{PORT},evil.example", f"0.0.0.0:{PORT}",
        f"2130706433:{PORT}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/flows/", "/api/health", LINKS])
def test_another_host_is_refused_whatever_it_asks(ask, reached, host, path):
    answer = ask("POST", path, host=host, **HAVING_IT)
    assert (answer.status_code, answer.text.count("\n"), reached) == (403, 1, [])


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", f"http://127.0.0.1:{PORT + 1}", f"https://127.0.0.1:{PORT}"]
)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
def test_another_origin_is_refused_even_with_the_secret(ask, reached, origin, method):
    answer = ask(method, "/api/flows/", origin=origin, **HAVING_IT)
    assert (answer.status_code, reached) == (403, [])
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "given",
    [
        {}, {"Authorization": "Basic d3Jvbmc6c2VjcmV0"}, {"Authorization": "nonsense é"},
        {"Authorization": f"Basic {SECRET}"}, {"Authorization": HAVING_IT["Authorization"].rstrip("=")},
        {"Authorization": HAVING_IT["Authorization"].replace("Basic", "Bearer")}, {"Authorization": "Basic "},
        {"Cookie": f"{COOKIE}="}, {"Cookie": f"{COOKIE}=x; session=y"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/api/flows/", "/api/health/", "/api//health", "/docs", "/openapi.json", LINKS])
def test_who_lacks_the_secret_is_refused(ask, reached, given, path):
    answer = ask("POST", path, **{name: value.encode() for name, value in given.items()})
    assert (answer.status_code, answer.text.count("\n"), reached) == (401, 1, [])
    assert ask("GET", path, **{name: value.encode() for name, value in given.items()}).status_code == 401


def test_who_has_it_comes_through_from_both_names_of_this_machine(ask, reached):
    assert ask("POST", "/api/flows/", **HAVING_IT).json() == "through"
    assert ask("POST", "/api/flows/", host=f"localhost:{PORT}", origin=f"http://localhost:{PORT}", **HAVING_IT).json()
    assert reached == [HAVING_IT["Authorization"]] * 2


def test_health_is_for_all_and_proof_of_the_secret_for_who_knows_where(ask, reached):
    assert ask("GET", "/api/health").status_code == 200
    assert ask("GET", health_of(SECRET)).json() is True
    assert ask("GET", health_of("user:other")).status_code == 401
    assert reached == [None]


def test_a_link_leads_a_browser_in_and_nothing_of_it_opens_anything_alone(ask, reached):
    link = ask("POST", LINKS, **HAVING_IT).json()["link"]
    page = ask("GET", link)
    cookie = re.match(f"({COOKIE}=[^;]+); HttpOnly; SameSite=Strict; Path=/", page.headers["set-cookie"])[1]
    key = {"Authorization": "Basic " + re.search(r'"prefect-password", "(.+?)"', page.text)[1]}
    assert (page.headers["cache-control"], page.headers["x-frame-options"]) == ("no-store", "DENY")
    assert ask("GET", link).status_code == 401
    assert ask("GET", "/runs", cookie=cookie).headers["x-frame-options"] == "DENY"
    assert ask("POST", "/api/flows/", cookie=cookie, **key, origin=HERE).json() == "through"
    assert reached == [HAVING_IT["Authorization"]] * 2
    assert ask("GET", "/api/flows/", cookie=cookie).status_code == 401
    assert ask("GET", "/api/flows/", **key).status_code == 401
    assert ask("POST", LINKS, cookie=cookie, **key).status_code == 401
    assert ask("POST", "/api/flows/", cookie=cookie, **key, origin="http://127.0.0.1:1").status_code == 403
