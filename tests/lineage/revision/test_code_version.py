"""Identity of the code, and what changed since a revision."""

from pathlib import Path

import numpy
import pytest
import torch

from coevo.lineage.revision.code_version import (
    DECIDING,
    PACKAGES,
    Code,
    build_of,
    changes,
    code_revision,
    flat,
    packages,
    source_hash,
)
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
    assert (found["torch"].split("+")[0], found["numpy"]) == (torch.__version__.split("+")[0], numpy.__version__)
    assert "+" not in torch.__version__ or found["torch"] == torch.__version__
    assert ("cu" in found["torch"].replace("cpu", "")) == (torch.version.cuda is not None)
    assert "absent" not in found.values()


BUILDS = {
    # Version of the package, __version__, cuda, hip: as the wheels of PyPI, of PyTorch's indices and of conda have it.
    "PyPI on Linux": ("2.13.0", "2.13.0+cu130", "13.0", None, "2.13.0+cu130"),
    "PyPI on macOS": ("2.13.0", "2.13.0", None, None, "2.13.0"),
    "index cpu": ("2.13.0+cpu", "2.13.0+cpu", None, None, "2.13.0+cpu"),
    "index cu126": ("2.13.0+cu126", "2.13.0+cu126", "12.6", None, "2.13.0+cu126"),
    "index rocm": ("2.13.0+rocm6.4", "2.13.0+rocm6.4", None, "6.4.43482", "2.13.0+rocm6.4"),
    "conda with CUDA": ("2.13.0", "2.13.0", "12.9", None, "2.13.0+cu129"),
    "conda with ROCm": ("2.13.0", "2.13.0", None, "6.4", "2.13.0+rocm64"),
    "conda without": ("2.13.0", "2.13.0", None, None, "2.13.0"),
    "nightly": ("2.14.0.dev20261101", "2.14.0.dev20261101+cu130", "13.0", None, "2.14.0.dev20261101+cu130"),
    "from source": ("2.13.0a0+gitcf30153", "2.13.0a0+gitcf30153", "13.0", None, "2.13.0a0+gitcf30153"),
}


@pytest.mark.parametrize("build", BUILDS)
def test_the_version_of_torch_names_its_build(tmp_path, monkeypatch, build):
    package, version, cuda, hip, named = BUILDS[build]
    facts = f"__version__ = {version!r}\ncuda: str | None = {cuda!r}\nhip: str | None = {hip!r}\n"
    (tmp_path / "version.py").write_text(f"from typing import Optional\n{facts}")
    assert build_of(tmp_path, package) == named
    assert build_of(tmp_path / "none", package) == package
    revision = Manifest.of({"config": CONFIG, "code": "a", "packages": INSTALLED | {"torch": "2.12.0+cpu"}}, {})
    changed = changes(revision, CONFIG, Code("a", INSTALLED | {"torch": named}, {}))
    assert changed == [f"packages.torch: 2.12.0+cpu -> {named}"]


def test_a_list_of_sections_is_compared_key_by_key_in_whatever_order_they_are_written():
    before, after = {"rewards": [{"a": 1, "b": 2}, {"a": 3}]}, {"rewards": ({"b": 2, "a": 1}, {"a": 4, "c": 5})}
    assert flat(before) == {"rewards.0.a": 1, "rewards.0.b": 2, "rewards.1.a": 3}
    assert flat(after) == {"rewards.0.b": 2, "rewards.0.a": 1, "rewards.1.a": 4, "rewards.1.c": 5}
    assert flat({"names": ["a"], "none": []}) == {"names": ["a"], "none": []}
