"""Publishing for commands without a loop, on a run with the real stores."""

import shutil
from datetime import timedelta

import lancedb
import pytest
from support.fsck import fsck
from support.runs import published

from coevo.configs.errors import CoevoError
from coevo.flows.upkeep.check import Check
from coevo.flows.upkeep.publishing import publish_if_quick, publish_the_rest
from coevo.flows.upkeep.repair import repair_run
from coevo.lineage.cursor import Cursor
from coevo.lineage.lineage import Lineage
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.bank import Bank


@pytest.fixture
def place(built, tmp_path, monkeypatch):
    """A copy of it that may be changed, and publishes into its own database."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return Workspace(shutil.copytree(built, tmp_path / "copy"))


@pytest.fixture
def paths(place):
    return place.existing("first")


@pytest.mark.filterwarnings("ignore:optimize.cleanup_older_than=0:UserWarning")
def test_what_a_finished_run_could_not_publish_comes_later_even_where_its_bank_was_pruned(place, paths, capsys):
    bank = lancedb.connect(paths.bank)
    for name in ("entries", "stats", "verdicts"):
        bank.open_table(name).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    publish_the_rest(place, paths)
    assert Cursor(paths.published).read() == 3
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        f" revision {number} is published without its bank" for number in range(4)
    ]
    (place.root / "mlflow.db").unlink()
    publish_the_rest(place, paths)
    assert not (place.root / "mlflow.db").exists()


def test_what_takes_long_is_left_to_the_next_resume_and_then_published_once(place, paths, monkeypatch, capsys):
    monkeypatch.setattr("coevo.flows.upkeep.publishing.AT_ONCE", 3_999)
    with Lineage.open(paths.lineage, place.cache) as lineage:
        publish_if_quick(place, paths, lineage, Bank(paths.bank))
        assert "4 revisions are not published yet: `coevo resume`" in capsys.readouterr().out
        assert (Cursor(paths.published).read(), (place.root / "mlflow.db").exists()) == (-1, False)
        monkeypatch.setattr("coevo.flows.upkeep.publishing.AT_ONCE", 4_000)
        publish_if_quick(place, paths, lineage, Bank(paths.bank))
    assert capsys.readouterr().out == ""
    publish_the_rest(place, paths)
    assert published(place.root, "first") == [1, 2]


def test_a_database_with_options_in_its_address_is_found_again(place, paths, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'other.db'}?timeout=5")
    publish_the_rest(place, paths)
    assert (tmp_path / "other.db").is_file()
    assert fsck(place.root) == []


@pytest.mark.full
def test_a_cursor_that_says_what_is_not_so_is_mended_once_mlflow_answers_and_only_then(place, paths, monkeypatch):
    for text in ('{"published": 9}', '{"published": -3}', ""):
        paths.published.write_text(text)
        check = Check(place, lambda _: None)
        with pytest.raises(CoevoError, match=r"published.json .*: repair it with `coevo fsck first --repair`"):
            publish_the_rest(place, paths)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        repair_run(check, paths)
        assert paths.published.read_text() == text
        monkeypatch.delenv("MLFLOW_TRACKING_URI")
        repair_run(check, paths)
        assert fsck(place.root) == []
        publish_the_rest(place, paths)
        assert (published(place.root, "first"), Cursor(paths.published).read()) == ([1, 2], 3)
