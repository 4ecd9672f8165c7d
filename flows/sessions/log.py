"""Reports of a scheduled session in Prefect's logs."""

from logging import Logger, LoggerAdapter

from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.publish.reporter import headline


class Log:
    """Reporter of a scheduled session, which writes to Prefect's logs."""

    def __init__(self, logger: "Logger | LoggerAdapter[Logger]") -> None:
        self._logger = logger

    def note(self, text: str) -> None:
        """Log nothing: Prefect shows stages as tasks."""

    def warn(self, text: str) -> None:
        """Log one line."""
        self._logger.warning(text)

    def revision(self, manifest: Manifest) -> None:
        """Log one line."""
        self._logger.info(headline(manifest))
