"""Publishing for commands without a loop, on a run with the real stores."""

from datetime import timedelta

import lancedb
import pytest
from support.small_run import build

from flows.publishing import publish_the_rest
from lineage.cursor import Cursor
from lineage.workspace import Workspace


@pytest.mark.filterwarnings("ignore:optimize.cleanup_older_than=0:UserWarning")
def test_what_a_finished_run_could_not_publish_comes_later_even_where_its_bank_was_pruned(
    tmp_path, monkeypatch, capsys
):
    build(tmp_path)
    place = Workspace(tmp_path)
    paths = place.existing("first")
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    bank = lancedb.connect(paths.bank)
    for name in ("entries", "stats", "verdicts"):
        bank.open_table(name).optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
    publish_the_rest(place, paths)
    assert Cursor(paths.published).read() == 3
    assert [line.split(":")[1] for line in capsys.readouterr().err.splitlines()] == [
        f" revision {number} is published without its bank" for number in range(4)
    ]
    (tmp_path / "mlflow.db").unlink()
    publish_the_rest(place, paths)
    assert not (tmp_path / "mlflow.db").exists()
