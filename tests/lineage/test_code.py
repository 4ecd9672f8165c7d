"""Identity of the code, and what changed since a revision."""

from pathlib import Path

import pytest

from lineage.code import PACKAGES, changes, code_revision, source_hash
from lineage.manifest import Manifest

CONFIG = {"seed": 1, "iterations": 5, "update": {"lr": 0.1, "kl": None}, "panels": ["a"], "extra": {}}


@pytest.fixture
def sources(tmp_path):
    for package in PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "inner" / "m.py").write_text(f"{package}\n")
    return tmp_path


def head(config=CONFIG, code="aaaaaaaaaaaaaaaa"):
    return Manifest.of({"config": config, "code": code}, {})


def test_the_hash_sees_content_names_and_new_files(sources):
    seen = {source_hash(sources)}
    (sources / "models" / "inner" / "m.py").write_text("changed\n")
    seen.add(source_hash(sources))
    (sources / "models" / "inner" / "m.py").rename(sources / "models" / "inner" / "n.py")
    seen.add(source_hash(sources))
    (sources / "flows" / "new.py").touch()
    seen.add(source_hash(sources))
    assert len(seen) == 4
    (sources / "flows" / "notes.txt").touch()
    (sources / "elsewhere.py").touch()
    assert source_hash(sources) in seen


def test_the_hash_does_not_depend_on_the_place(sources):
    before = source_hash(sources)
    assert source_hash(sources.rename(sources.with_name("moved"))) == before


def test_the_installed_code_is_hashed():
    assert code_revision() == source_hash(Path(__file__).parents[2])


def test_nothing_changed():
    assert changes(head(), {**CONFIG, "iterations": 50, "panels": ("a",)}, "aaaaaaaaaaaaaaaa") == []


def test_each_change_is_named_with_both_values():
    now = {
        "seed": 1,
        "iterations": 5,
        "update": {"lr": 0.2, "kl": {"beta": 1}},
        "panels": ["a", "b"],
        "extra": {"x": 1},
    }
    assert changes(head(), now, "bbbbbbbbbbbbbbbb") == [
        "extra: {} -> absent",
        "extra.x: absent -> 1",
        "panels: ['a'] -> ['a', 'b']",
        "update.kl: None -> absent",
        "update.kl.beta: absent -> 1",
        "update.lr: 0.1 -> 0.2",
        "code: aaaaaaaaaaaa -> bbbbbbbbbbbb",
    ]
