"""Tokens of a bank's server. Each is signed with the bank's secret and states the names that it is limited to."""

import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from urllib.parse import parse_qsl

from coevo.flows.servers.server_secret import home, secret_of
from coevo.tasks.bank_alone.new_lesson import ScopeName, scope_text
from coevo.utilities.errors import CoevoError

SERVER = ".server"
"""Folder of the secret in the directory of a bank."""
GRANT = "coevo.grant"
"""Key of what a token opens in the scope of a request."""
MISSING = (0, 0, 0)
"""State of a file that is not there."""
_FORM = re.compile(r"bank_(?P<names>[A-Za-z0-9_-]{0,20000})\.(?P<mac>[0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Grant:
    """Scopes that a token opens.

    Attributes:
        names: of user, agent or task, which every scope of its requests has; none opens all scopes.
    """

    names: Mapping[str, str] = field(default_factory=dict)

    def scope(self, asked: ScopeName | None) -> ScopeName:
        """Scope of a request: the one that it asks for, with the token's names.

        Raises:
            CoevoError: it asks for a scope that the token does not open.
        """
        if not self.names or (isinstance(asked, Mapping) and scope_text(asked) == ""):
            return self.names or asked or ""
        if isinstance(asked, str) and asked:
            raise CoevoError("scope: this token is limited to names: write an object of names, or leave it out")
        wider = dict(asked or {})
        for name, value in self.names.items():
            if wider.setdefault(name, value) != value:
                raise CoevoError(f"scope: this token is limited to another {name}: leave it out")
        return wider

    def sees(self, scope: str) -> bool:
        """True if requests of the token may read an entry with this scope."""
        if not self.names or not scope:
            return True
        names = dict(parse_qsl(scope, keep_blank_values=True))
        return self.names.items() <= names.items() and _is_of(scope, names)

    def changes(self, scope: str) -> bool:
        """True if requests of the token may change what stands in a scope: with names, not what is for everybody."""
        return self.sees(scope) and (scope != "" or not self.names)


class BankTokens:
    """Tokens of the bank in a directory; a copy of the directory has others.

    Args:
        bank: the directory.
    """

    def __init__(self, bank: Path) -> None:
        self._bank = bank
        self._key = b""
        self._seen = MISSING

    def token(self, names: Mapping[str, str]) -> str:
        """A token that is limited to these names; without any it opens all scopes.

        Raises:
            CoevoError: a name is unknown or empty.
        """
        stated = urlsafe_b64encode(scope_text(names).encode()).decode().rstrip("=")
        return f"bank_{stated}.{self._mac(stated)}"

    def grant(self, token: str) -> Grant | None:
        """The grant of a token; None if it is not one of this bank."""
        found = _FORM.fullmatch(token)
        if found is None or not hmac.compare_digest(found["mac"], self._mac(found["names"])):
            return None
        stated = urlsafe_b64decode(found["names"] + "=" * (-len(found["names"]) % 4)).decode()
        return Grant(dict(parse_qsl(stated, keep_blank_values=True)))

    def renew(self) -> None:
        """Make all tokens so far invalid, at once."""
        (home(self._bank, SERVER) / "secret").unlink(missing_ok=True)

    def _mac(self, stated: str) -> str:
        return hmac.digest(self._secret(), f"bank {stated}".encode(), sha256).hex()

    def _secret(self) -> bytes:
        """The bank's secret; its file is read again once it has changed."""
        path = home(self._bank, SERVER) / "secret"
        try:
            found = path.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_mode)
        except FileNotFoundError:
            seen = MISSING
        if seen == MISSING or seen != self._seen:
            self._key, self._seen = secret_of(self._bank, SERVER).encode(), seen
        return self._key


def _is_of(scope: str, names: Mapping[str, str]) -> bool:
    """True if a scope is the text of these names, and no other text that reads like them."""
    try:
        return scope_text(names) == scope
    except CoevoError:
        return False
