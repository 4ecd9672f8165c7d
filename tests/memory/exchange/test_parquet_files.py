"""A bank in plain files: what retrieval needs, and nothing that has left."""

from dataclasses import replace

from support.batches import entry

from coevo.memory.bank.bank import Bank
from coevo.memory.bank.change import BankChange
from coevo.memory.clusters import Cluster
from coevo.memory.exchange.parquet_files import PlainBank, save
from coevo.memory.stats import Stats


def test_what_retrieval_reads_comes_back(tmp_path):
    here, gone = entry("mug in safe"), replace(entry("cup in safe"), retired=3)
    bank = Bank(tmp_path / "bank")
    clusters = (Cluster(0, "at safe", (here.id,)), Cluster(1, "at hall"))
    bank.merge(BankChange((here, gone), (Stats(here.id, 4, 3, 0.25, 5), Stats(gone.id, 9)), clusters=clusters))
    save(bank, tmp_path / "new" / "plain")
    plain = PlainBank(tmp_path / "new" / "plain")
    assert plain.active() == [here]
    assert plain.stats() == {here.id: Stats(here.id, 4, 3, 0.25, 5)}
    assert plain.clusters() == list(clusters)


def test_an_empty_bank_is_a_bank(tmp_path):
    save(Bank(tmp_path / "bank"), tmp_path / "plain")
    plain = PlainBank(tmp_path / "plain")
    assert (plain.active(), plain.stats(), plain.clusters()) == ([], {}, [])
