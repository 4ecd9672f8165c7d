"""Sessions on real stores without servers: a real environment, bank and lineage, an untrained policy that stays."""

from contextlib import contextmanager

from support.player import player

from lineage.lineage import Lineage
from lineage.workspace import Workspace
from memory.change import BankChange
from memory.store import Bank
from tasks.commit import commit
from tasks.gate import episode_limits
from tasks.open import position
from tasks.report import Silent
from tasks.session import Parts, Session, Stores


@contextmanager
def opened(root, config, entries=(), played=None):
    """A session on the stores as they are; where there are none, revision 0 is made with some entries."""
    place = Workspace(root)
    paths = place.existing("run") if (root / "runs").exists() else place.create("run", config)
    played = played or player()
    with Lineage.open(paths.lineage, place.cache) as lineage:
        bank = Bank(paths.bank)
        paths.clear_staging()
        head = lineage.head()
        if head is None:
            bank.merge(BankChange(entries=tuple(entries)))
        parts = Parts(played.env, played, None, None, episode_limits(config, played.env, 512))
        session = Session(config, parts, Stores(paths, bank, lineage, None, Silent()))
        position(session, head, paths.root / "none") if head else _start(session)
        yield session


def _start(session):
    policy = session.stores.paths.staging / "policy"
    policy.mkdir(parents=True)
    (policy / "weights").write_text("none")
    commit(session)
