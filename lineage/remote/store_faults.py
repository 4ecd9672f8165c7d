"""One-line messages for every error of a remote's store."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from coevo.lineage.remote.remote_store import Store
from coevo.utilities.errors import CoevoError

SILENCE = ("Connect", "Endpoint", "Timeout")
"""Parts of botocore's error names for a server that does not answer."""


@contextmanager
def one_line(store: Store) -> Iterator[None]:
    """Translate errors of the store.

    Raises:
        CoevoError: in place of the original error.
    """
    from dvc_objects.errors import ObjectDBError, ObjectFormatError

    try:
        yield
    except CoevoError:
        raise
    except (OSError, ObjectDBError, ObjectFormatError, *_botocore()) as error:
        raise CoevoError(f"remote {store.label}: {_reason(error)}") from error


def _reason(error: BaseException) -> str:
    said = " ".join(str(error).split())[:200]
    if "bucket does not exist" in said:
        return "no such bucket: create it, or name another one"
    if isinstance(error, PermissionError):
        return f"permission denied ({said}): check who owns it, or the AWS_* keys"
    if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError"):
        return "no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if isinstance(error, ConnectionError) or any(word in type(error).__name__ for word in SILENCE):
        return f"no answer ({said}): check AWS_ENDPOINT_URL and the network, then repeat the command"
    return f"{said}: fix that, then repeat the command"


def _botocore() -> tuple[type[BaseException], ...]:
    # Without the extra it is not installed; without an S3 remote it is not loaded.
    found = sys.modules.get("botocore.exceptions")
    return (found.BotoCoreError, found.ClientError) if found else ()
