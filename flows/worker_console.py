"""The terminal of a worker: a server that has gone is a line there, and no traceback."""

from copy import copy
from logging import LogRecord

from httpx import TransportError
from prefect.logging.handlers import PrefectConsoleHandler
from websockets.exceptions import WebSocketException

LOST = (ConnectionError, TransportError, WebSocketException)
"""Exceptions that clients raise once their server is dead."""


class Console(PrefectConsoleHandler):
    """Prefect's handler, for its setting of that name."""

    def emit(self, record: LogRecord) -> None:
        """Show a record."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, LOST):
            record = copy(record)
            record.msg, record.args, record.exc_info = f"{record.getMessage()} ({error})", (), None
        super().emit(record)
