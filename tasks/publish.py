"""Publishing: MLflow learns of committed revisions in the background, and of each exactly once."""

from lineage.manifest import Manifest
from tasks.session import Session
from tasks.stage import stage
from tasks.tracking.publication import Publication


@stage("publish")
def publish(session: Session, manifest: Manifest) -> None:
    """Hand a committed revision to the publisher, and tell whoever watches."""
    stores = session.stores
    commit = stores.lineage.commit_hash(manifest.revision)
    stores.publisher.submit(Publication(manifest, commit, session.entries, session.before, session.committed.episodes))
    stores.reporter.revision(manifest)
