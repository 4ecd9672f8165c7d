"""Banks at an address: a directory, or a prefix of an S3 bucket, ``s3://BUCKET/PREFIX``.

Keys, region and endpoint come from the usual environment variables, such as ``AWS_ENDPOINT_URL`` and
``AWS_ACCESS_KEY_ID``. Files of a table never change, and a manifest is created on the condition that no other exists:
readers beside a writer see whole versions. An S3 prefix has no pipes or links, so the checks of ``opening`` for these
concern directories only.
"""

import os
from functools import cached_property
from pathlib import Path
from typing import Any

from coevo.utilities.errors import CoevoError

S3 = "s3://"


class BankAddress:
    """A key or prefix on S3, with the part of ``pathlib.Path`` that reading a bank needs.

    Args:
        url: ``s3://BUCKET/PREFIX``.

    Raises:
        CoevoError: it names no bucket or no prefix.
    """

    def __init__(self, url: str) -> None:
        self._path = url.removeprefix(S3).strip("/")
        bucket, _, prefix = self._path.partition("/")
        if not (url.startswith(S3) and bucket and prefix):
            raise CoevoError(f"bank {url}: write a directory, or s3://BUCKET/PREFIX")

    def __truediv__(self, name: str) -> "BankAddress":
        return BankAddress(f"{S3}{self._path}/{name}")

    def __str__(self) -> str:
        return f"{S3}{self._path}"

    @property
    def name(self) -> str:
        """Last part."""
        return self._path.rpartition("/")[2]

    def is_dir(self) -> bool:
        """Report whether keys begin with it."""
        from pyarrow.fs import FileType

        return bool(self._info().type == FileType.Directory)

    def exists(self) -> bool:
        """Report whether it is a key."""
        return bool(self._info().is_file)

    def names(self) -> list[str]:
        """Names of the keys right below it, sorted."""
        from pyarrow.fs import FileSelector

        found = self._fs.get_file_info(FileSelector(self._path, allow_not_found=True))
        return sorted(info.base_name for info in found if info.is_file)

    def move(self, target: "BankAddress") -> None:
        """Give a key another name."""
        self._fs.move(self._path, target._path)

    def copy_to(self, path: Path) -> None:
        """Copy a key to a file."""
        with self._fs.open_input_stream(self._path) as source, path.open("wb") as file:
            while chunk := source.read(1 << 20):
                file.write(chunk)

    def _info(self) -> Any:
        return self._fs.get_file_info(self._path)

    @cached_property
    def _fs(self) -> Any:
        from pyarrow.fs import S3FileSystem

        scheme, _, host = _endpoint().rpartition("://")
        return S3FileSystem(**({"endpoint_override": host, "scheme": scheme or "https"} if host else {}))


BankPath = Path | BankAddress


def bank_path(address: Path | str | BankAddress) -> BankPath:
    """Path of a bank, from what a user wrote.

    Raises:
        CoevoError: the address is of another kind.
    """
    if isinstance(address, str) and "://" in address:
        return BankAddress(address)
    return Path(address) if isinstance(address, str) else address


def connect(bank: BankPath) -> Any:
    """LanceDB's connection to a bank."""
    import lancedb

    if isinstance(bank, Path):
        return lancedb.connect(bank)
    options = {"virtual_hosted_style_request": "false"}
    if endpoint := _endpoint():
        options |= {"endpoint": endpoint, "allow_http": str(endpoint.startswith("http://")).lower()}
    return lancedb.connect(str(bank), storage_options=options)


def _endpoint() -> str:
    """Address of a service other than Amazon's; empty for that."""
    return (os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "").rstrip("/")
