"""The shared cache: contents, needs of runs, and removal."""

import pytest
from support.lineage_driver import lineage_in, play, run_in

from coevo.lineage.objects.cache import Cache, allocated, disk_usage, freed_by
from coevo.utilities.errors import CoevoError


@pytest.fixture
def cache(directory):
    play(directory, 3)
    return Cache(directory / "cache")


def contents(directory, *revisions):
    manifests = [lineage_in(directory).history.manifest(revision) for revision in revisions]
    return {content: "first" for manifest in manifests for content in manifest.artifacts.values()}


def test_all_revisions_together_need_all_objects(directory, cache):
    assert cache.closure(contents(directory, 0, 1, 2)) == set(cache.objects())


def test_removing_what_one_revision_does_not_need_leaves_it_whole_and_frees_what_was_said(directory, cache):
    before = disk_usage(directory / "cache")
    surplus = {oid: size for oid, size in cache.objects().items() if oid not in cache.closure(contents(directory, 2))}
    cache.remove(surplus)
    assert before - disk_usage(directory / "cache") == sum(surplus.values()) > 0
    assert set(cache.objects()) == cache.closure(contents(directory, 2))
    assert (lineage_in(directory).artifacts.materialise(2, "policy", directory / "out") / "weights.bin").is_file()


def test_an_artifact_that_is_not_there_is_named_with_who_needs_it(directory, cache):
    content = lineage_in(directory).history.manifest(1).artifacts["policy"]
    cache.remove([content])
    with pytest.raises(CoevoError, match=f"first: object {content} is not readable"):
        cache.closure(contents(directory, 1))


def test_disk_usage_counts_a_file_once_however_many_links_it_has(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one").write_bytes(b"x" * 10_000)
    alone = disk_usage(tmp_path)
    assert freed_by(tmp_path / "a" / "one") == alone == allocated(tmp_path / "a" / "one")
    (tmp_path / "two").hardlink_to(tmp_path / "a" / "one")
    assert disk_usage(tmp_path) == disk_usage(tmp_path / "a", tmp_path) == alone
    assert freed_by(tmp_path / "two") == 0


def test_a_run_links_into_the_cache_so_both_are_counted_once(directory, cache):
    assert disk_usage(directory / "cache", run_in(directory).lineage / "policy") == disk_usage(directory / "cache")
