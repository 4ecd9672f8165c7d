"""Identity of the code, and what changed since a revision."""

from pathlib import Path

import numpy
import pytest
import torch

from coevo.lineage.revision.code import DECIDING, PACKAGES, Code, changes, code_revision, packages, source_hash
from coevo.lineage.revision.manifest import Manifest

CONFIG = {"seed": 1, "iterations": 5, "update": {"lr": 0.1, "kl": None}, "panels": ["a"], "extra": {}}
INSTALLED = {"python": "3.11", "torch": "2.13.0"}


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
    assert code_revision() == source_hash(Path(__file__).parents[3])


def test_nothing_changed():
    longer = {**CONFIG, "iterations": 50, "panels": ("a",)}
    assert changes(head(), longer, Code("aaaaaaaaaaaaaaaa", INSTALLED, {})) == []


def test_each_change_is_named_with_both_values():
    now = {
        "seed": 1,
        "iterations": 5,
        "update": {"lr": 0.2, "kl": {"beta": 1}},
        "panels": ["a", "b"],
        "extra": {"x": 1},
    }
    assert changes(head(), now, Code("bbbbbbbbbbbbbbbb", INSTALLED, {})) == [
        "extra: {} -> absent",
        "extra.x: absent -> 1",
        "panels: ['a'] -> ['a', 'b']",
        "update.kl: None -> absent",
        "update.kl.beta: absent -> 1",
        "update.lr: 0.1 -> 0.2",
        "code: aaaaaaaaaaaa -> bbbbbbbbbbbb",
    ]


def test_each_package_that_changed_is_named_with_both_versions():
    made_with = {"python": "3.11", "torch": "2.13.0", "peft": "0.21.2"}
    revision = Manifest.of({"config": CONFIG, "code": "a", "packages": made_with}, {})
    assert changes(revision, CONFIG, Code("a", made_with, {})) == []
    now = {"python": "3.12", "torch": "2.14.0", "scipy": "1.17.1"}
    assert changes(revision, CONFIG, Code("a", now, {})) == [
        "packages.peft: 0.21.2 -> absent",
        "packages.python: 3.11 -> 3.12",
        "packages.scipy: absent -> 1.17.1",
        "packages.torch: 2.13.0 -> 2.14.0",
    ]


def test_a_module_that_changed_is_named_and_one_that_the_revision_does_not_know_is_not():
    revision = Manifest.of({"config": CONFIG} | Code("a", INSTALLED, {"shop": "1" * 64, "toys": "2" * 64}).state(), {})
    now = Code("a", INSTALLED, {"shop": "3" * 64, "toys": "2" * 64, "fruit": "4" * 64})
    assert changes(revision, CONFIG, now) == ["module shop: 111111111111 -> 333333333333"]
    assert "modules" not in Code("a", INSTALLED, {}).state()


def test_the_packages_that_are_installed():
    found = packages()
    assert found.keys() == {"python", *DECIDING}
    assert (found["torch"], found["numpy"]) == (torch.__version__, numpy.__version__)
    assert "absent" not in found.values()
