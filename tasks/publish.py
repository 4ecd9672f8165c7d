"""Publishing: MLflow learns of committed revisions in the background, of each exactly once, and Prefect shows them."""

from lineage.manifest import Manifest
from tasks.seal import Sealed
from tasks.session import Stores
from tasks.stage import stage
from tasks.tracking.publication import Publication


@stage("publish")
def publish(stores: Stores, sealed: Sealed, manifest: Manifest) -> None:
    """Hand a committed revision to the publisher, and tell whoever watches."""
    commit, draft = stores.lineage.commit_hash(manifest.revision), sealed.draft
    publication = Publication(manifest, commit, sealed.entries, sealed.before, draft.episodes, draft.judged)
    stores.publisher.submit(publication)
    if stores.artifacts is not None:
        stores.artifacts.submit(publication, draft.proposed)
    stores.reporter.revision(manifest)
