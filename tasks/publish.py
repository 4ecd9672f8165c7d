"""Publishing: MLflow learns of committed revisions in the background, of each exactly once, and Prefect shows them."""

from lineage.manifest import Manifest
from tasks.session import Session
from tasks.stage import stage
from tasks.tracking.publication import Publication


@stage("publish")
def publish(session: Session, manifest: Manifest) -> None:
    """Hand a committed revision to the publisher, and tell whoever watches."""
    stores = session.stores
    commit, draft = stores.lineage.commit_hash(manifest.revision), session.sealed
    publication = Publication(manifest, commit, session.entries, session.before, draft.episodes, draft.judged)
    stores.publisher.submit(publication)
    if stores.artifacts is not None:
        stores.artifacts.submit(publication, draft.proposed)
    stores.reporter.revision(manifest)
