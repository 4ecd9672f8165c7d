"""Secrets of a workspace, one for each of its servers, which grant access to Prefect's and MLflow's."""

import hmac
import os
import re
import stat
from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from secrets import token_hex

from filelock import FileLock

from coevo.lineage.atomic_files import make_private, write_atomically
from coevo.utilities.errors import CoevoError

VARIABLE = "PREFECT_API_AUTH_STRING"
"""Variable in which Prefect's clients expect the secret."""

FORM = re.compile(r"[0-9a-f]{16}:[0-9a-f]{64}")


def home(workspace: Path, server: str = "prefect") -> Path:
    """Folder of a workspace for the files of a server: ``prefect`` or ``mlflow``."""
    return workspace.resolve() / server


def secret_of(workspace: Path, server: str = "prefect") -> str:
    """The workspace's secret for a server, in the form ``user:password``; created at its first use.

    The first half depends on the path of the workspace, so that a copy does not share the secret of its original.

    Raises:
        CoevoError: other users of the machine can read its file.
    """
    make_private(workspace)
    make_private(home(workspace, server))
    path = home(workspace, server) / "secret"
    with FileLock(path.with_suffix(".lock")):
        digest = sha256(os.fsencode(home(workspace, server))).hexdigest()[:16]
        if not _read(path).startswith(f"{digest}:"):
            write_atomically(path, f"{digest}:{token_hex(32)}", private=True)
        return _read(path)


def authorization_of(secret: str) -> str:
    """``Authorization`` header of a request with a secret."""
    return "Basic " + b64encode(secret.encode()).decode()


def health_of(secret: str) -> str:
    """Health check path that only a server with this secret answers."""
    return "/api/health/" + hmac.digest(secret.encode(), b"health", "sha256").hex()[:32]


def _read(path: Path) -> str:
    """The secret in a file; empty if missing or malformed."""
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CoevoError(f"{path}: {error.strerror}: remove it, the next command makes a new one") from None
    with os.fdopen(opened, "rb") as file:
        _check_private(path, os.fstat(file.fileno()).st_mode)
        text = file.read(200).decode(errors="replace").strip()
    return text if FORM.fullmatch(text) else ""


def _check_private(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode) or mode & 0o077:
        raise CoevoError(
            f"{path}: others may know this secret (mode {stat.S_IMODE(mode):o}, 600 is needed): remove it, the "
            "next command makes a new one; a file system without modes cannot hold a workspace"
        )
