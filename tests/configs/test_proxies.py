"""Proxies of the environment: the user's exceptions stay, this machine is one, and what is wrong is one line."""

import importlib.util
import os
import socket
from itertools import product

import httpx
import httpx2
import pytest
from support.completions import completions, said
from support.writer_models import question

from coevo.configs import proxies
from coevo.configs.bank.writer_model_config import EndpointWriterModelConfig
from coevo.configs.proxies import check_proxies, is_here, reach, reach_directly
from coevo.models.writer_models.connection import check_address
from coevo.models.writer_models.endpoint_writer_model import EndpointWriterModel
from coevo.tasks.publish.mlflow.tracking_store import TrackingError, reached, tracking_store
from coevo.utilities.errors import CoevoError

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """An environment without proxies, which comes back afterwards."""
    for name in NAMES:
        for spelling in (name, name.upper()):
            monkeypatch.setenv(spelling, "")  # so that it is restored, whatever the code sets
            monkeypatch.delenv(spelling)


MERGED = {
    "none": ({}, "127.0.0.1,localhost"),
    "upper case": ({"NO_PROXY": "corp.example"}, "corp.example,127.0.0.1,localhost"),
    "lower case": ({"no_proxy": "corp.example"}, "corp.example,127.0.0.1,localhost"),
    "both": ({"no_proxy": "a.example", "NO_PROXY": "b.example,a.example"}, "a.example,b.example,127.0.0.1,localhost"),
    "blanks": ({"NO_PROXY": " a.example, b.example\tc.example,,"}, "a.example,b.example,c.example,127.0.0.1,localhost"),
    "networks": ({"NO_PROXY": "10.0.0.0/8,.corp,h:8080"}, "10.0.0.0/8,.corp,h:8080,127.0.0.1,localhost"),
    "a star, which not every client knows": ({"NO_PROXY": "*.lan"}, ".lan,127.0.0.1,localhost"),
    "all": ({"NO_PROXY": "a.example,*"}, "*"),
    "IPv6": ({"NO_PROXY": "[::1],fd00::5"}, "::1,fd00::5,127.0.0.1,localhost"),
    "an IPv6 network": ({"NO_PROXY": "fd00::/8"}, "all://[fd00::]/8,127.0.0.1,localhost"),
    "an IPv6 network in brackets": ({"NO_PROXY": "[fd00::]/8"}, "all://[fd00::]/8,127.0.0.1,localhost"),
    "an IPv6 port": ({"NO_PROXY": "[::1]:80"}, "all://[::1]:80,127.0.0.1,localhost"),
    "an address": ({"NO_PROXY": "http://intern.example"}, "http://intern.example,127.0.0.1,localhost"),
}


@pytest.mark.parametrize(("given", "merged"), MERGED.values(), ids=MERGED)
def test_both_spellings_have_what_either_had_and_every_client_reads_them(given, merged, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for _ in range(2):  # again in a child, which inherits them
        reach_directly()
        assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == merged
    httpx.Client().close()
    with httpx2.Client() as client:
        direct = client._transport_for_url(httpx2.URL("http://[fd00::5]/")) is client._transport
    assert direct is ("fd00::" in merged or merged == "*")


WRONG = {
    "SOCKS": ({"ALL_PROXY": "socks5://user:secret@h:1080"}, "ALL_PROXY names a SOCKS proxy"),
    "SOCKS in lower case": ({"all_proxy": "socks5h://h:1080", "ALL_PROXY": ""}, "all_proxy names a SOCKS proxy"),
    "SOCKS 4": ({"HTTPS_PROXY": "socks4://h:1"}, "HTTPS_PROXY names a proxy of kind 'socks4'"),
    "half a bracket": ({"http_proxy": "http://[::1"}, "http_proxy is no address of a proxy"),
    "no bracket": ({"HTTP_PROXY": "::1"}, "HTTP_PROXY is no address of a proxy"),
    "no port": ({"http_proxy": "http://h:port"}, "http_proxy is no address of a proxy"),
    "no host": ({"https_proxy": "http://"}, "https_proxy is no address of a proxy"),
    "a large port": ({"https_proxy": "http://h:99999"}, "https_proxy is no address of a proxy"),
    "a blank": ({"https_proxy": "http://h h:1"}, "https_proxy is no address of a proxy"),
    "a password with a mark": ({"http_proxy": "user:p#secret@h:1"}, "http_proxy is no address of a proxy"),
    "half a bracket among exceptions": ({"NO_PROXY": "a,[::1"}, "NO_PROXY has '[::1', which is no host"),
    "no port among exceptions": ({"no_proxy": "h:x"}, "no_proxy has 'h:x', which is no host"),
    "another alphabet": ({"NO_PROXY": "пример.example"}, "NO_PROXY has '\\u043f"),
}


def endpoint(url):
    return EndpointWriterModelConfig(type="endpoint", url=url, model="m")


@pytest.mark.parametrize(("given", "line"), WRONG.values(), ids=WRONG)
def test_what_no_client_can_read_is_one_line_that_names_the_variable_and_no_password(given, line, monkeypatch):
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    for check in (reach_directly, lambda: check_address(endpoint("https://api.example/v1"))):
        with pytest.raises(CoevoError) as caught:
            check()
        assert f"{caught.value}".startswith(line) and "\n" not in f"{caught.value}"
        assert "secret" not in f"{caught.value}"
    check_address(endpoint("http://127.0.0.1:8000/v1"))  # no proxy is asked


@pytest.mark.parametrize(
    "value", ["http://h:3128", "h:3128", "http://[::1]:3128", "[::1]:3128", "https://user:p%40w@h", "HTTP://h/", ""]
)
def test_proxies_that_clients_read_are_right(value, monkeypatch):
    for name in NAMES[:3]:
        monkeypatch.setenv(name, value)
    check_proxies()
    httpx.Client().close()
    httpx2.Client().close()


HERE = [
    "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.0.0.1", "127.9.9.9", "127.1", "0x7f.1", "2130706433",
    "0.0.0.0", "0", "::1", "[::1]", "::", "::ffff:127.0.0.1", "[::ffff:7f00:1]", "::ffff:0.0.0.0", "::1%lo",
    "0:0:0:0:0:0:0:1", socket.gethostname(), socket.gethostname().upper(), f"{socket.gethostname()}.",
]  # fmt: skip
ELSEWHERE = [
    "example.com", "localhost.example.com", "notlocalhost", "10.0.0.5.example", "128.0.0.1", "8.8.8.8", "fd00::5",
    "::ffff:8.8.8.8", "0x08080808", "1.2.3.4.5", "", "host", f"{socket.gethostname()}.example.com",
]  # fmt: skip


def test_names_and_addresses_of_this_machine_and_of_others():
    assert [host for host in HERE if not is_here(host)] == []
    assert [host for host in ELSEWHERE if is_here(host)] == []


def test_the_file_of_hosts_names_this_machine(tmp_path, monkeypatch):
    listed = "127.0.0.1 localhost.localdomain box\t# spare\n::1 IP6-localhost ip6-loopback\n127.0.1.1 box.lan.\n"
    monkeypatch.setattr(proxies, "HOSTS", tmp_path / "hosts")
    (tmp_path / "hosts").write_bytes(
        f"{listed}10.9.9.9 far.lan\n# 127.0.0.1 off.lan\n127.0.0.2\nx y\n".encode() + b"\xff\n"
    )
    here = ["localhost.localdomain", "box", "BOX.", "ip6-localhost", "ip6-loopback", "box.lan", "box.lan."]
    assert [name for name in here if not is_here(name)] == []
    assert [name for name in ("far.lan", "off.lan", "spare", "#", "y", "127.0.0.2.lan") if is_here(name)] == []
    monkeypatch.setattr(proxies, "HOSTS", tmp_path / "none")
    assert not is_here("box.lan")


@pytest.mark.full
@pytest.mark.parametrize("host", ["0.0.0.0", "localhost", "127.1", "[::ffff:127.0.0.1]", "0", socket.gethostname()])
def test_an_endpoint_of_this_machine_under_any_name_is_not_asked_through_a_proxy(host, monkeypatch):
    try:
        socket.getaddrinfo(host.strip("[]"), 80)
    except OSError:
        pytest.skip("the name has no address here")
    with completions(lambda _: said("of the proxy")) as (proxy, seen), completions(lambda _: said("x")) as (url, _):
        monkeypatch.setenv("http_proxy", proxy)
        monkeypatch.setenv("COEVO_TEST_KEY", "sk-of-a-test-0123456789")
        there = url.replace("127.0.0.1", host)
        config = EndpointWriterModelConfig(type="endpoint", url=there, model="m", key="COEVO_TEST_KEY", retries=0)
        ((_, reply),) = EndpointWriterModel(config, pytest.fail).replies([question()])
    assert seen == []
    assert reply.text == "x" or host == socket.gethostname()  # its address may not be the loopback's


@pytest.mark.full
@pytest.mark.parametrize("spelling", ["NO_PROXY", "no_proxy"])
@pytest.mark.parametrize("entry", ["writer.invalid", ".invalid", "*.invalid", "*", "WRITER.invalid.", "invalid."])
def test_the_users_exceptions_hold_after_servers_were_started(spelling, entry, monkeypatch):
    with completions(lambda _: said("of the proxy")) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv(spelling, entry)
        reach_directly()
        config = EndpointWriterModelConfig(type="endpoint", url="http://writer.invalid/v1", model="m", retries=0)
        ((_, reply),) = EndpointWriterModel(config, pytest.fail).replies([question()])
        assert seen == [] and reply.fault.startswith("the endpoint does not answer (")
        other = EndpointWriterModelConfig(type="endpoint", url="http://elsewhere.example/v1", model="m", retries=0)
        ((_, reply),) = EndpointWriterModel(other, pytest.fail).replies([question()])
        assert reply.text == ("" if entry == "*" else "of the proxy")


PAST = {
    "intern.example": ("intern.example", "INTERN.example", "a.intern.example", "intern.example."),
    "Intern.example.": ("intern.example", "a.intern.example."),
    ".example": ("example", "a.example", "a.b.example"),
    "*.example": ("a.example", "a.b.EXAMPLE"),
    "intern.example:5000": ("intern.example",),
    "all://intern.example": ("intern.example",),
    "http://intern.example": ("intern.example", "a.intern.example"),
    "https://intern.example:5000/": ("intern.example", "INTERN.example."),
    "http://10.1.2.3": ("10.1.2.3",),
    "::ffff:10.1.2.3": ("10.1.2.3", "[::ffff:a01:203]"),
    "[::ffff:a01:203]": ("10.1.2.3",),
    "10.0.0.0/8": ("10.0.0.1", "10.255.255.255", "[::ffff:10.1.2.3]"),
    "10.0.0.0/255.0.0.0": ("10.0.0.1", "10.255.255.255"),
    "10.1.2.3": ("10.1.2.3", "[::ffff:a01:203]"),
    "fd00::/8": ("[fd00::5]", "[fdff::1]"),
    "[fd00::5]": ("[fd00::5]", "[FD00:0::5]"),
    "a.invalid,10.0.0.0/24": ("10.0.0.9", "a.invalid"),
    "*": ("a.example", "10.0.0.1", "[fd00::5]"),
}
THROUGH = {
    "intern.example": ("example", "xintern.example", "intern.example.com"),
    ".example": ("xexample", "example.com"),
    "10.0.0.0/8": ("11.0.0.1", "a10.0.0.1", "10.0.0.1.example", "[fd00::5]"),
    "10.1.2.3": ("10.1.2.30", "110.1.2.3"),
    "http://intern.example": ("http", "example", "http.example"),
    "::ffff:10.1.2.3": ("10.1.2.30", "[::1:203]"),
    "fd00::/8": ("[fe00::5]", "fd00.example", "10.0.0.1"),
    "": ("a.example",),
}
ADDRESSES = tuple(product(("http", "https"), ("", ":5000"), ("", "/", "/a/b")))


@pytest.mark.parametrize("spelling", ["no_proxy", "NO_PROXY"])
@pytest.mark.parametrize("by_requests", [True, False])
def test_requests_to_exceptions_and_this_machine_go_past_proxies_and_the_host_is_named(
    spelling, by_requests, monkeypatch
):
    """The server of MLflow, S3 and an endpoint: each exception, with each host that it covers, in each address."""
    cases = [(entry, host, True) for entry, hosts in PAST.items() for host in hosts]
    cases += [("", f"[{host}]" if ":" in host else host, True) for host in HERE if "[" not in host and "%" not in host]
    cases += [(entry, host, False) for entry, hosts in THROUGH.items() for host in hosts]
    tried = 0
    for (entry, host, past), (scheme, port, path) in product(cases, ADDRESSES):
        monkeypatch.setenv(spelling, entry)
        monkeypatch.setenv("NO_PROXY" if spelling == "no_proxy" else "no_proxy", "other.invalid")
        url = f"{scheme}://{host}{port}{path}"
        assert reach(url, "SETTING", by_requests) is past, (entry, url)
        assert os.environ["no_proxy"] == os.environ["NO_PROXY"]
        listed = os.environ["no_proxy"].split(",")
        assert (host.strip("[]").lower() in listed or listed == ["*"]) is past, (entry, url, listed)
        tried += 1
    assert tried > 200


NOWHERE = [
    "http://[::1", "http://::1]", "http://", "https:///a", "http://h:port", "http://h:99999", "http://h:-1", "http:h",
    "127.0.0.1:9000", "h", "", "ftp://h", "http://[g::1]", "http://h:0", "://h", "http://[fd00::5", "http:///",
]  # fmt: skip


@pytest.mark.parametrize("url", NOWHERE)
def test_what_is_no_address_is_one_line_that_names_the_setting(url, monkeypatch, tmp_path):
    with pytest.raises(CoevoError, match=r"^SETTING is not an address: set one such as http://host:5000$"):
        reach(url, "SETTING", by_requests=True)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", url)
    if url.startswith("http:"):
        with pytest.raises(CoevoError, match=r"^MLFLOW_TRACKING_URI is not an address"):
            tracking_store(tmp_path)


@pytest.mark.parametrize("name", NAMES[:3])
@pytest.mark.parametrize("value", ["socks5://u:secret@h:1", "socks5h://h:1", "http://[::1", "socks4://h:1", "::1"])
def test_only_the_proxy_that_a_client_uses_is_checked_for_it(name, value, monkeypatch):
    monkeypatch.setattr("coevo.configs.proxies.find_spec", lambda module: None)
    monkeypatch.setenv(name, value)
    for scheme, by_requests in product(("http", "https"), (True, False)):
        used = name == f"{scheme}_proxy" or (name == "all_proxy" and by_requests)
        reach(f"{scheme}://127.0.0.1:1", "SETTING", by_requests)
        if not used:
            reach(f"{scheme}://h.example", "SETTING", by_requests)
            continue
        with pytest.raises(CoevoError, match=f"^{name} ") as caught:
            reach(f"{scheme}://h.example", "SETTING", by_requests)
        assert "secret" not in f"{caught.value}"
        if value.startswith("socks5"):
            assert ("package PySocks" in f"{caught.value}") is by_requests
    # The proxy of the scheme is used, whatever that for all is.
    monkeypatch.setenv("all_proxy", "http://[::1")
    monkeypatch.setenv("http_proxy", "http://h:3128")
    assert reach("http://h.example", "SETTING", by_requests=True) is False


SPOKEN_TO = [
    ("", "0.0.0.0"), ("", "localhost"), ("", "127.1"), ("", "[::ffff:127.0.0.1]"), ("", "0"),
    ("", socket.gethostname()), ("mlflow.invalid", "mlflow.invalid"), (".invalid", "mlflow.invalid"),
    ("*.invalid", "mlflow.invalid"), ("*", "mlflow.invalid"), ("mlflow.invalid:5000", "mlflow.invalid"),
]  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(("entry", "host"), SPOKEN_TO)
def test_mlflow_is_not_asked_through_a_proxy_where_it_is_here_or_excepted(entry, host, monkeypatch, tmp_path):
    with completions(lambda _: said("of the proxy")) as (proxy, seen):
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("no_proxy", "other.invalid")
        monkeypatch.setenv("NO_PROXY", entry)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://{host}:1")
        with pytest.raises(TrackingError), reached(tracking_store(tmp_path), "does not answer") as client:
            client.search_experiments()
        assert seen == []


@pytest.mark.full
def test_a_database_without_its_driver_is_one_line(monkeypatch, tmp_path):
    if importlib.util.find_spec("psycopg2") is not None:
        pytest.skip("its driver is installed")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://user:secret@h/db")
    with pytest.raises(TrackingError, match="psycopg2") as caught, reached(tracking_store(tmp_path), "does not answer"):
        pass
    assert "secret" not in f"{caught.value}"
