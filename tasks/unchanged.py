"""Whether settings, code and packages are those that made a run's last revision; Prefect is not needed to tell."""

from configs.errors import CoevoError
from configs.run import RunConfig
from lineage.code import changes, code_revision, packages
from lineage.manifest import Manifest


def check_unchanged(config: RunConfig, head: Manifest | None, run: str, accept: bool) -> list[str]:
    """What has changed since the last revision, if that is accepted.

    Raises:
        CoevoError: something has, and it is not.
    """
    found = [] if head is None else changes(head, config.model_dump(mode="json"), code_revision(), packages())
    if found and not accept:
        raise CoevoError(
            f"run {run!r} has changed since its last revision: {'; '.join(found)}; "
            f"to go on all the same: coevo resume {run} --accept-change"
        )
    return found
