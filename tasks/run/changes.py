"""Changes of settings, code and packages since a run's last revision. The check does not need Prefect."""

from coevo.configs.errors import CoevoError
from coevo.configs.run import RunConfig
from coevo.lineage.revision.code import changes
from coevo.lineage.revision.manifest import Manifest
from coevo.lineage.revision.modules import code_of_run


def check_unchanged(config: RunConfig, head: Manifest | None, run: str, accept: bool) -> list[str]:
    """Changes since the last revision, if they are accepted.

    Raises:
        CoevoError: there are changes, and they are not accepted.
    """
    code = code_of_run(config)  # also of a new run: what is edited later is not what it has imported
    found = [] if head is None else changes(head, config.model_dump(mode="json"), code)
    if found and not accept:
        raise CoevoError(
            f"run {run!r} has changed since its last revision: {'; '.join(found)}; "
            "to continue anyway, add --accept-change to `coevo resume`"
        )
    return found
