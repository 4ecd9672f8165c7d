"""Open sessions of a frozen, untrained policy on real stores, without servers."""

from contextlib import contextmanager

from support.player import player

from lineage.lineage import Lineage
from lineage.workspace import Workspace
from memory.admission.base import admission_of
from memory.change import BankChange
from memory.store import Bank
from tasks.commit import commit
from tasks.gate import episode_limits
from tasks.open import position
from tasks.report import Silent
from tasks.session import Parts, Session, Stores


@contextmanager
def opened(root, config, entries=(), writer=None, trainer=None, played=None):
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
        admission = None if config.bank is None else admission_of(config.bank.admission)
        parts = Parts(played.env, played, trainer, writer, admission, episode_limits(config, played.env, 512))
        session = Session(config, parts, Stores(paths, bank, lineage, None, Silent()))
        if head is None:
            (paths.staging / "policy").mkdir(parents=True)
            (paths.staging / "policy" / "weights").write_text("none")
            commit(session)
        else:
            position(session, head, paths.staging)
        yield session
