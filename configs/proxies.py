"""Web proxies of the environment: what goes to this machine goes past them, and what cannot be read is one line.

Clients read ``http_proxy``, ``https_proxy``, ``all_proxy`` and ``no_proxy`` in lower or upper case, lower case first,
and each of them knows other forms of addresses.
"""

import os
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import OpenerDirector

from coevo.utilities.errors import CoevoError
from coevo.utilities.local_http import opener

PROXIES = ("http_proxy", "https_proxy", "all_proxy")
EXCEPT = ("no_proxy", "NO_PROXY")
HERE = ("127.0.0.1", "localhost")
"""Addresses of servers that coevo starts."""
HOSTS = Path("/etc/hosts")
"""File with further names of this machine."""

SOCKS = {"socksio": "socksio", "socks": "PySocks"}
"""Packages for SOCKS proxies, that of HTTPX and that of Requests, by the module that each brings."""
_NUMBER = re.compile(r"(?:0x[0-9a-f]+|[0-9]+)(?:\.(?:0x[0-9a-f]+|[0-9]+)){0,3}")


def reach_directly(*hosts: str) -> None:
    """Exclude this machine's servers from proxies, which would see secrets, for this process and its children.

    Both spellings of the list get what either has, in forms that every client reads.

    Args:
        hosts: further addresses of this machine.

    Raises:
        CoevoError: an address or a proxy has no meaning, or needs a package that is missing; names the variable.
    """
    check_proxies()
    _except(*hosts)


def host_of(url: str, setting: str) -> str:
    """Host of a server's address. Raises ``CoevoError``, which names the setting, if it has none."""
    try:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0:
            return parts.hostname
    except ValueError:
        pass
    raise CoevoError(f"{setting} is not an address: set one such as http://host:5000")


def reach(url: str, setting: str, by_requests: bool) -> bool:
    """Prepare the environment for requests to a server that a setting names; return True if no proxy gets them.

    None gets those to this machine under any name, nor those to a host that the user excepts: not every library knows
    networks and wildcards, so that the host itself is added to the exceptions.

    Args:
        url: address of the server.
        setting: its name in messages.
        by_requests: True if Requests sends them; False for a library without SOCKS that ignores ``all_proxy``.

    Raises:
        CoevoError: the address has no meaning, or the proxy on the way cannot be used; names the setting or variable.
    """
    host = host_of(url, setting)
    past = passes(host)
    if not past:
        names = [f"{urlsplit(url).scheme}_proxy", "all_proxy"]
        used = [name for name in names if os.environ.get(_spelt(name))]
        check_proxies(used[:1] if by_requests else names[:1], "socks" if by_requests else "")
    _except(*([host] if past else []))
    return past


def opener_of(url: str, setting: str) -> OpenerDirector:
    """Opener for one address: it follows no redirection, and passes proxies by as ``reach`` says.

    Args:
        url: the address.
        setting: its name in messages.

    Raises:
        CoevoError: as ``reach``.
    """
    return opener(reach(url, setting, by_requests=False))


def check_proxies(names: Iterable[str] = PROXIES, socks: str = "socksio") -> None:
    """Check that a library can use the proxies of the environment.

    Args:
        names: lower-case variables that it reads.
        socks: module by which it speaks to SOCKS proxies; empty if it does not.

    Raises:
        CoevoError: a proxy has no meaning, or needs a package that is missing; names the variable, not what may be a
            password in it.
    """
    for used in map(_spelt, names):
        if value := os.environ.get(used, ""):
            problem = _problem(value, socks)
            if problem:
                raise CoevoError(f"{used} {problem}, or unset it")


def passes(host: str) -> bool:
    """Report whether requests to a host go past proxies: it is this machine, or the user excepts it in any spelling.

    Raises:
        CoevoError: an exception has no meaning; names the variable.
    """
    return is_here(host) or any(_covers(entry, host) for entry in _exceptions())


def is_here(host: str) -> bool:
    """Report whether a host of an address is this machine, which a proxy cannot reach under that name."""
    name = host.strip("[]").rstrip(".").lower()
    address = _address(name.partition("%")[0])
    if address is None:
        return name == "localhost" or name.endswith(".localhost") or name in _own_names(HOSTS)
    return _is_own(address)


def _is_own(address: IPv4Address | IPv6Address) -> bool:
    return address.is_loopback or address.is_unspecified or f"{address}" in _own_addresses()


def _spelt(name: str) -> str:
    """Spelling of a variable that libraries read."""
    return name if name in os.environ else name.upper()


def _exceptions() -> list[str]:
    """Entries of both spellings."""
    return [_entry(each, name) for name in EXCEPT for each in re.split(r"[\s,]+", os.environ.get(name, "")) if each]


def _except(*hosts: str) -> None:
    known = _exceptions()
    # Beside others, some clients do not know the entry for all.
    merged = ["*"] if "*" in known else dict.fromkeys([*known, *HERE, *hosts])
    os.environ |= dict.fromkeys(EXCEPT, ",".join(merged))


def _covers(entry: str, host: str) -> bool:
    """Report whether an exception is a host, a domain above it, or a network around it; ports do not count."""
    bare, host = entry.rpartition("://")[2].lower(), host.strip("[]").rstrip(".").lower()
    address = _address(host)
    with suppress(ValueError):
        if address is not None:
            listed = re.sub(r"[\[\]]", "", bare)
            return bare == "*" or address == _address(listed) or address in ip_network(listed, strict=False)
    name = bare.partition(":")[0].strip("./")
    return bare == "*" or (bool(name) and f".{host}".endswith(f".{name}"))


def _problem(value: str, socks: str) -> str:
    """Problem of a proxy with its remedy; empty if there is none."""
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        good = bool(parts.hostname) and parts.port != 0 and not re.search(r"[\s\x00-\x20\x7f]", value)
    except ValueError:
        good = False
    if good and parts.scheme in ("socks5", "socks5h"):
        if not socks:
            return "names a SOCKS proxy, which cannot be used here: set one such as http://host:3128"
        return "" if find_spec(socks) else f"names a SOCKS proxy, which needs the package {SOCKS[socks]}: install it"
    if good and parts.scheme not in ("http", "https"):
        return f"names a proxy of kind {parts.scheme[:20]!a}: set one such as http://host:3128"
    return "" if good else "is no address of a proxy: set one such as http://host:3128 or http://[::1]:3128"


def _entry(text: str, name: str) -> str:
    """An entry of the list in a form that all clients read: they differ in addresses in brackets and networks."""
    host, slash, size = text.partition("/")
    bare = host.removeprefix("[").removesuffix("]")
    try:
        if "://" not in text and bare.count(":") > 1 and (slash or not host.startswith("[") or host.endswith("]")):
            if slash:
                ip_network(f"{bare}/{size}", strict=False)
            else:
                ip_address(bare)
            return f"all://[{bare}]/{size}" if slash else bare
        parts = urlsplit(text if "://" in text else f"all://{text}")
        good = text.isascii() and (text.startswith((".", "*")) or bool(parts.hostname)) and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise CoevoError(f"{name} has {text[:60]!a}, which is no host, address or network: correct it")
    if text.startswith("*."):
        return text[1:]  # not every client knows the star
    return f"all://{text}" if text.startswith("[") else text


def _address(name: str) -> IPv4Address | IPv6Address | None:
    """Address that a host is; None for a name."""
    try:
        found = ip_address(name)
    except ValueError:
        if not _NUMBER.fullmatch(name):
            return None
        try:
            return IPv4Address(socket.inet_aton(name))  # 127.1, 0x7f000001 and other forms that reach this machine
        except OSError:
            return None
    return getattr(found, "ipv4_mapped", None) or found


@cache
def _own_names(hosts: Path) -> frozenset[str]:
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return frozenset(each for each in (name, short, f"{short}.local", *_listed(hosts)) if short)


def _listed(hosts: Path) -> Iterator[str]:
    """Names that the file of hosts gives to this machine."""
    with suppress(OSError):
        for line in hosts.read_text("utf-8", "replace").lower().splitlines():
            first, *names = line.partition("#")[0].split() or [""]
            address = _address(first)
            if address is not None and _is_own(address):
                yield from (name.rstrip(".") for name in names)


@cache
def _own_addresses() -> frozenset[str]:
    return frozenset(_interfaces())


def _interfaces() -> Iterator[str]:
    try:
        import psutil
    except ModuleNotFoundError:  # in a worker of another interpreter, whose parent has excepted these addresses
        return
    for cards in psutil.net_if_addrs().values():
        for card in cards:
            if card.family in (socket.AF_INET, socket.AF_INET6):
                yield card.address.partition("%")[0].lower()
