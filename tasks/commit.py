"""The commit: policy, optimizer, episodes and bank become one revision, or nothing does."""

from pathlib import Path

from lineage.manifest import Manifest
from tasks.episodes import write_episodes
from tasks.seal import Sealed
from tasks.session import Stores
from tasks.stage import stage


@stage("commit")
def commit(stores: Stores, sealed: Sealed) -> Manifest:
    """Commit a sealed revision with all that is staged."""
    staging, bank = stores.paths.staging, stores.bank
    write_episodes(sealed.draft.episodes, staging / "episodes")
    bank.merge(sealed.change)
    state = {**sealed.state, "tables": bank.hashes()}
    return stores.lineage.commit(artifacts(staging), state, {**sealed.observed, "tables": bank.versions()})


def artifacts(staging: Path) -> dict[str, Path]:
    """What was staged: an artifact that is not there stays as it was in the revision before."""
    return {path.name: path for path in sorted(staging.iterdir()) if path.is_dir()}
