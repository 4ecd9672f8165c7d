"""Changes of settings, code, packages and weights since a run's last revision. The check does not need Prefect."""

from collections.abc import Mapping

from coevo.configs.run_config import RunConfig
from coevo.lineage.revision.code_version import changes, code_of_run
from coevo.lineage.revision.manifest import Manifest
from coevo.tasks.run.weight_digests import changed
from coevo.utilities.errors import CoevoError


def check_unchanged(
    config: RunConfig, head: Manifest | None, run: str, accept: bool, weights: Mapping[str, str] | None = None
) -> list[str]:
    """Changes since the last revision, if they are accepted.

    Args:
        config: configuration of the run.
        head: its last revision, or None.
        run: its name.
        accept: True if the user accepts changes.
        weights: digests of the models that it names by path, see ``coevo.tasks.run.weight_digests``.

    Raises:
        CoevoError: there are changes, and they are not accepted.
    """
    code = code_of_run(config)  # also of a new run: what is edited later is not what it has imported
    found = [] if head is None else changes(head, config.model_dump(mode="json"), code)
    if head is not None:
        found += changed(head.state.get("weights", {}), weights or {})
    if found and not accept:
        raise CoevoError(
            f"run {run!r} has changed since its last revision: {'; '.join(found)}; "
            "to continue anyway, add --accept-change to `coevo resume`"
        )
    return found
