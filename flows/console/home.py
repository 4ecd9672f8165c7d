"""A home directory for users without one: a container may run as a user id that has no entry in passwd, or as nobody.

Libraries look for it while they are imported, and fail.
"""

import os
import pwd
import stat
import tempfile
from pathlib import Path

import typer

from coevo.utilities.errors import CoevoError

NAMES = ("LOGNAME", "USER", "LNAME", "USERNAME")
"""Variables in which Python looks for the user's name."""


def is_known() -> bool:
    """True if passwd has an entry of this user."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def ensure_home() -> None:
    """Set ``HOME`` and ``USER`` for this process and its children where nothing else tells them; prints one line.

    The home of a user whom the system knows is replaced only if it neither exists nor can be made, as that of nobody.

    Raises:
        CoevoError: no directory for temporary files can be written to.
    """
    given, known = os.environ.get("HOME", ""), is_known()
    if not known and not any(map(os.environ.get, NAMES)):
        os.environ["USER"] = f"uid-{os.getuid()}"
    if _may_exist(Path.home()) if known else Path(given).is_absolute() and os.access(given, os.W_OK | os.X_OK):
        return
    problem = f"has no entry in passwd and {f'HOME={given} cannot be written to' if given else 'HOME is not set'}"
    if known:
        problem = f"has no home directory: {Path.home()} does not exist"
    os.environ["HOME"] = str(_temporary())
    used = f"{os.environ['HOME']} is used; set HOME to a directory that stays"
    typer.echo(f"coevo: user id {os.getuid()} {problem}: {used}", err=True)


def _may_exist(home: Path) -> bool:
    """True for a directory that exists, or that this user can make."""
    above = next((path for path in (home, *home.parents) if os.access(path, os.F_OK)), home)
    return above == home or os.access(above, os.W_OK | os.X_OK)


def _temporary() -> Path:
    """A directory of this user alone, the same for each command where nobody else has taken its name."""
    try:
        path = Path(tempfile.gettempdir(), f"coevo-home-{os.getuid()}")
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077:
            return path
        return Path(tempfile.mkdtemp(prefix="coevo-home-"))
    except OSError as error:
        raise CoevoError(f"user id {os.getuid()} has no home directory ({error}): set HOME to one") from None
