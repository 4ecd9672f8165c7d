"""Damage to what the history of the run ``first`` names: cache, bank, MLflow, and the files around them."""

import os
import shutil

from support import small_run
from support.damaged import LOST, MENDED, points, spoil

from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange


def newest_policy_missing(it):
    it.stored(3, "policy", "weights").unlink()


def newest_policy_corrupt(it):
    spoil(it.stored(3, "policy", "weights"))


def newest_listing_missing(it):
    it.stored(3, "policy").unlink()


def newest_listing_corrupt(it):
    spoil(it.stored(3, "policy"))


def old_policy_missing(it):
    it.stored(1, "policy", "weights").unlink()


def policy_corrupt_in_cache_and_tree(it):
    stored, shown = it.stored(3, "policy", "weights"), it.lineage / "policy" / "weights"
    shown.unlink()
    os.link(stored, shown)
    spoil(stored)
    (it.root / "runs/other/lineage/policy/weights").unlink()


def policy_corrupt_but_in_another_run(it):
    stored, shown = it.stored(3, "policy", "weights"), it.lineage / "policy" / "weights"
    shown.unlink()
    os.link(stored, shown)
    spoil(stored)


def newest_policy_missing_everywhere(it):
    newest_policy_missing(it)
    for run in ("first", "other"):
        (it.root / f"runs/{run}/lineage/policy/weights").unlink()


def bank_ahead(it):
    Bank(it.run.bank).merge(BankChange(entries=(small_run.REJECTED,)))


def table_version_gone(it):
    it.table("entries", 2).unlink()


def newest_table_version_corrupt(it):
    spoil(it.table("stats", 3))


def newest_rows_truncated(it):
    files = sorted((it.run.bank / "stats.lance" / "data").iterdir())
    newest = max(files, key=lambda path: path.stat().st_mtime_ns)
    newest.write_bytes(newest.read_bytes()[:100])


def cursor_ahead(it):
    it.run.published.write_text('{"published": 7}')


def cursor_unreadable(it):
    it.run.published.write_text('{"publ')


def cursor_empty(it):
    it.run.published.write_text("")


def cursor_of_no_number(it):
    it.run.published.write_text('{"published": 1e400}')


def cursor_below(it):
    it.run.published.write_text('{"published": -3}')


def database_gone(it):
    (it.root / "mlflow.db").unlink()


def cursor_beyond_mlflow(it):
    it.run.published.write_text('{"published": 3}')


def points_twice(it):
    mlflow, run = points(it)
    mlflow.log_metric(run, "agent/success/train", 0.75, timestamp=5, step=1)


def points_beyond_the_head(it):
    mlflow, run = points(it)
    mlflow.log_metric(run, "agent/success/train", 0.75, timestamp=5, step=8)


def commit_tag(it):
    mlflow, run = points(it)
    mlflow.set_tag(run, "coevo.commit", "0" * 40)


def mlflow_run_of_an_earlier_version(it):
    mlflow, run = points(it)
    mlflow.update_run(run, name="coevo-rl-homerules-3")


def config_unreadable(it):
    it.run.config.write_text('{"recipe": ')


def created_unreadable(it):
    it.run.created.write_text("yesterday")


def created_missing(it):
    it.run.created.unlink()


def half_made_run(it):
    fresh = it.root / "runs" / ".second.0a1b2c3d"
    fresh.mkdir()
    (fresh / "created").write_text("1")


def file_among_runs(it):
    (it.root / "runs" / "notes.txt~").write_text("x")


def nested_run(it):
    shutil.copytree(it.root / "runs" / "other", it.run.root / "other")


def warm_start_spoilt(it):
    policy = it.workspace.warmstarts / "0123"
    policy.mkdir(parents=True)
    (policy / "weights").write_text("half")
    policy.with_suffix(".sha256").write_text("0" * 64)


def warm_start_without_its_hash(it):
    (it.workspace.warmstarts / "0123").mkdir(parents=True)


FILE_MISSING = [
    (newest_policy_missing, "first@3", "policy/weights of revision 3 is missing in the cache", MENDED),
    (bank_ahead, "first@3", "bank table entries (latest) has content", MENDED),
    (cursor_ahead, "first", "published.json says revision 7, but its last is 3", MENDED),
    (config_unreadable, "first", "config.json cannot be read", MENDED),
]
FILE_CORRUPT = [
    (newest_policy_corrupt, "first@3", "policy/weights of revision 3 is corrupt in the cache", MENDED),
    (table_version_gone, "first@1", "bank table entries version 2 of revision 1, 2 cannot be read", LOST),
    (cursor_unreadable, "first", "published.json is damaged", MENDED),
]
LISTING_MISSING = [
    (newest_listing_missing, "first@3", "policy of revision 3 is missing in the cache", MENDED),
    (newest_rows_truncated, "first@3", "bank table stats version 3 of revision 3 cannot be read", LOST),
    (cursor_empty, "first", "published.json is damaged", MENDED),
    (half_made_run, "runs/.second.0a1b2c3d", "left an unfinished run", MENDED),
    (warm_start_spoilt, "cache/warmstarts/0123", "has changed", MENDED),
]
LISTING_CORRUPT = [
    (newest_listing_corrupt, "first@3", "policy of revision 3 is corrupt in the cache", MENDED),
    (cursor_of_no_number, "first", "published.json is damaged", MENDED),
    (file_among_runs, "runs/notes.txt~", "it is not a run", LOST),
    (warm_start_without_its_hash, "cache/warmstarts/0123", "has changed", MENDED),
]
TWO_RUNS = [
    (policy_corrupt_but_in_another_run, "first@3", "policy/weights of revision 3 is corrupt", MENDED),
    (nested_run, "runs/first/other", "a run lies in another run", LOST),
    (cursor_below, "first", "published.json is damaged", MENDED),
]
PUBLISHED = [
    (points_twice, "first@1", "MLflow has other points than the manifest: agent/success/train", LOST),
    (commit_tag, "first@2", "the tag coevo.commit in MLflow names another commit", MENDED),
    (mlflow_run_of_an_earlier_version, "first", "MLflow shows it as 'coevo-rl-homerules-3'", MENDED),
]
POINTS_BEYOND = [(points_beyond_the_head, "first", "MLflow has points of revision 8, but the last is 3", LOST)]
NO_DATABASE = [(database_gone, "first", "does not know the run", MENDED)]
TOGETHER = (
    FILE_MISSING, FILE_CORRUPT, LISTING_MISSING, LISTING_CORRUPT, TWO_RUNS, PUBLISHED, POINTS_BEYOND, NO_DATABASE,
)  # fmt: skip
"""Damage that is made at once: whose finding each is, what that says, and whether a repair mends it."""
IN_SEVERAL = [
    (cursor_beyond_mlflow, "MLflow lacks", MENDED),
    (newest_table_version_corrupt, "bank table stats (latest) cannot be opened", LOST),
    (created_unreadable, "created is not a number", LOST),
    (created_missing, "created is missing, so no command sees the run", LOST),
    (old_policy_missing, "policy/weights of revision 1 is missing in the cache", LOST),
    (policy_corrupt_in_cache_and_tree, "policy/weights of revision 3 is corrupt in the cache", LOST),
    (newest_policy_missing_everywhere, "policy/weights of revision 3 is missing in the cache", LOST),
]
"""The same for damage with more findings than the one that is named here, which is of ``first``."""
IN_TWO_RUNS = (
    policy_corrupt_but_in_another_run, policy_corrupt_in_cache_and_tree, newest_policy_missing_everywhere, nested_run,
)  # fmt: skip
"""Damage that needs the run ``other`` as well."""
