"""A bank on S3, read by many while one writes: a moto server on loopback."""

import os
import subprocess
import sys
import threading

import pytest
from support.entries import entry
from support.runs import ROOT
from support.s3_server import BUCKET

from coevo.memory.bank.bank import Bank, StoredBank
from coevo.memory.bank.bank_address import BankAddress, bank_path
from coevo.memory.bank.change import BankChange
from coevo.memory.bank.lance_errors import UnreadableError
from coevo.memory.bank.lance_files import manifests
from coevo.memory.stats import Stats
from coevo.utilities.errors import CoevoError

ADDRESS = f"s3://{BUCKET}/banks/first"


def change(number):
    new = entry(f"lesson {number}", "it is so", f"act {number}", f"sign {number}")
    return BankChange(entries=(new,), stats=(Stats(new.id, number, 1),))


def published(bank):
    return bank.versions(), bank.hashes()


@pytest.mark.full
def test_a_bank_on_s3_has_the_content_of_one_in_a_directory_at_every_revision(s3, tmp_path):
    there, here = Bank(ADDRESS), Bank(tmp_path / "bank")
    revisions = []
    for number in range(6):
        for bank in (there, here):
            bank.merge(change(number))
        revisions.append(published(there))
        assert there.hashes() == here.hashes()
    stored = StoredBank(ADDRESS)
    assert stored.entries() == here.entries()
    for number, (versions, hashes) in enumerate(revisions):
        assert len(stored.at(versions, hashes).entries()) == number + 1
    assert sorted(Bank(ADDRESS).restore(*revisions[2])) == ["entries", "stats"]
    assert StoredBank(ADDRESS).hashes() == revisions[2][1]
    assert len(StoredBank(ADDRESS).at(*revisions[5]).entries()) == 6  # what was rolled back can still be read
    with pytest.raises(CoevoError, match="version 99 is gone"):
        stored.at({**revisions[0][0], "entries": 99})
    with pytest.raises(CoevoError, match="not the recorded"):
        stored.at(revisions[0][0], revisions[1][1]).entries()


@pytest.mark.full
def test_a_damaged_newest_manifest_hides_no_revision_and_is_put_aside(s3):
    bank = Bank(ADDRESS)
    bank.merge(change(0))
    versions, hashes = published(bank)
    bank.merge(change(1))
    newest = manifests(BankAddress(f"{ADDRESS}/entries.lance"))[0]
    s3.client().put_object(Bucket=BUCKET, Key=f"banks/first/entries.lance/{newest}", Body=b"rotten")
    assert len(StoredBank(ADDRESS).at(versions, hashes).entries()) == 1
    with pytest.raises(UnreadableError):
        StoredBank(ADDRESS).entries()
    Bank(ADDRESS).restore(versions, hashes)
    assert len(StoredBank(ADDRESS).entries()) == 1
    assert any("/_damaged/" in key for key in s3.objects())


READER = """
import sys
from coevo.memory.bank.bank import StoredBank
for line in sys.stdin:
    versions, hashes, size = eval(line)
    found = StoredBank(sys.argv[1]).at(versions, hashes)
    print(len(found.entries()) == size and found.hashes() == hashes, flush=True)
"""


@pytest.mark.full
def test_readers_of_other_processes_see_each_revision_whole_once_it_is_published(s3):
    bank, answers, told = Bank(ADDRESS), [], threading.Event()
    bank.merge(change(0))
    script = [sys.executable, "-c", READER, ADDRESS]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    readers = [
        subprocess.Popen(script, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    writer = threading.Thread(target=lambda: [bank.merge(change(number)) for number in range(1, 9)] and told.set())
    revisions = [(*published(bank), 1)]
    writer.start()
    while not told.is_set() or len(answers) < 8:
        if told.is_set() and len(revisions) == 1:
            revisions.append((*published(bank), 9))
        for reader in readers:
            print(revisions[-1], file=reader.stdin, flush=True)
        answers += [reader.stdout.readline() for reader in readers]
    writer.join()
    for reader in readers:
        reader.stdin.close()
        reader.stdout.close()
        reader.wait(60)
    assert set(answers) == {"True\n"}


@pytest.mark.parametrize("address", ["s3://", "s3://bucket", "s3:///x", "gs://bucket/x", "http://h/x"])
def test_an_address_of_another_kind_is_one_line(address):
    with pytest.raises(CoevoError, match=r"write a directory, or s3://BUCKET/PREFIX$"):
        bank_path(address)


@pytest.mark.full
def test_a_bank_that_is_not_there_or_a_server_that_is_not_is_one_line_without_keys(s3, monkeypatch):
    with pytest.raises(UnreadableError, match="does not exist"):
        StoredBank(ADDRESS)
    s3.stop()
    with pytest.raises(CoevoError) as refusal:
        StoredBank(ADDRESS)
    assert "\n" not in str(refusal.value)
    assert "secret" not in str(refusal.value)
