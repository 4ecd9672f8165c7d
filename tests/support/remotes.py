"""Runs to push and pull: copies of a small run, and further revisions of it."""

import shutil

from support import small_run

from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange


def copy_run(source, root, name="first"):
    """A workspace that holds a copy of one run."""
    shutil.copytree(source / "runs" / name, root / "runs" / name, ignore=shutil.ignore_patterns("tmp"))
    shutil.copytree(source / "cache", root / "cache", dirs_exist_ok=True)
    return root


def advance(root, lesson, name="first"):
    """Go on with a run as a session does: recover it, write a lesson down, and commit a revision with a new policy."""
    workspace = Workspace(root)
    paths = workspace.existing(name)
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        lineage.recover(bank)
        head = lineage.history.head()
        bank.merge(BankChange(entries=(small_run.entry(lesson, "mug", "go safe", revision=head.revision + 1),)))
        policy = paths.staging / "policy"
        shutil.rmtree(policy, ignore_errors=True)
        policy.mkdir(parents=True)
        (policy / "weights").write_text(lineage.artifacts.path("policy").joinpath("weights").read_text() + lesson)
        state = {**head.state, "iteration": head.iteration + 1, "tables": bank.hashes()}
        return lineage.commit({"policy": policy}, state, {**head.observed, "tables": bank.versions()})


def forget(root, lesson, name="first"):
    """Leave the bank as a process does that was killed before its commit."""
    paths = Workspace(root).existing(name)
    Bank(paths.bank).merge(BankChange(entries=(small_run.entry(lesson, "mug", "go safe"),)))


def content(root, name="first"):
    """Everything that a run must have again elsewhere: states, tables and artifacts of each revision."""
    workspace = Workspace(root)
    paths = workspace.existing(name)
    bank = Bank(paths.bank)
    with Lineage.open(paths.lineage, workspace.cache) as lineage:
        manifests = lineage.history.log()
        for manifest in manifests:
            assert bank.at(manifest.versions).hashes() == manifest.tables
            policy = lineage.artifacts.materialise(manifest.revision, "policy", root / "look" / "policy")
            assert (policy / "weights").read_text().startswith("policy of")
            shutil.rmtree(root / "look")
        return [manifest.state for manifest in manifests], lineage.history.commits(), paths.config.read_text()


def files_in(root):
    """Every file of a remote with its content and the time of its last change."""
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root): (path.read_bytes(), path.stat().st_mtime_ns) for path in found}
