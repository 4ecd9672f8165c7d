"""Hashes of the user's own modules: which files belong to one, and that nothing of them is imported."""

import sys
import textwrap

import pytest

from coevo.configs.load.load import load_recipe
from coevo.lineage.revision.code_version import _installed_parts, _own_modules, own_modules


@pytest.fixture(autouse=True)
def _anew():
    _forget()
    yield
    _forget()


def _forget():
    for cached in (_own_modules, _installed_parts):
        cached.cache_clear()


@pytest.fixture
def folder(tmp_path):
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / "shop.py").write_text("import json\n\n\ndef open_doors():\n    import prices\n")
    (directory / "prices.py").write_text("from market.fruit import apple\n")
    (directory / "market").mkdir()
    (directory / "market" / "__init__.py").touch()
    (directory / "market" / "fruit.py").write_text("apple = 3\n")
    (directory / "other.py").write_text("raise ImportError\n")
    return directory


def hashed(folder, kind="shop:Shop"):
    _own_modules.cache_clear()
    return own_modules(load_recipe("homerules-coevo-rl", [f"env={{type: '{kind}'}}", f"python_path=[{folder}]"]))


def test_a_shipped_recipe_names_none():
    assert own_modules(load_recipe("homerules-coevo-rl", [])) == {}


def test_what_it_imports_from_its_folder_belongs_to_it_and_what_lies_beside_it_does_not(folder):
    before = hashed(folder)
    assert before.keys() == {"shop"}
    (folder / "other.py").write_text("raise ValueError\n")
    assert hashed(folder) == before
    for directory in (folder / "shop.py", folder / "prices.py", folder / "market" / "fruit.py"):
        former = hashed(folder)
        directory.write_text(directory.read_text() + "\n")
        assert hashed(folder) != former, directory
    assert not {"shop", "prices", "market"} & sys.modules.keys()


def test_the_place_of_the_folder_does_not_count(folder):
    before = hashed(folder)
    assert hashed(folder.rename(folder.with_name("moved"))) == before


def test_the_files_of_a_package_belong_to_a_module_in_it(folder):
    before = hashed(folder, "market.fruit:Fruit")
    (folder / "market" / "nuts.py").touch()
    assert hashed(folder, "market.fruit:Fruit").keys() == {"market.fruit"} == before.keys()
    assert hashed(folder, "market.fruit:Fruit") != before


def test_a_module_that_is_nowhere_is_left_to_the_import(folder):
    assert hashed(folder, "nowhere:Shop") == {}


def test_a_module_that_cannot_be_parsed_counts_and_is_left_to_the_import(folder):
    before = hashed(folder)
    (folder / "prices.py").write_text("\n\ndef (:\n")
    assert hashed(folder) != before


def test_a_folder_without_init_counts_and_one_that_an_installed_package_shadows_does_not(folder):
    (folder / "market" / "__init__.py").unlink()
    (folder / "json").mkdir()
    (folder / "json" / "extra.py").touch()
    before = hashed(folder)
    (folder / "json" / "extra.py").write_text("apple = 5\n")
    assert hashed(folder) == before
    (folder / "market" / "fruit.py").write_text("apple = 5\n")
    assert hashed(folder) != before


def test_an_installed_module_is_its_package_and_an_installed_part_is_found_by_its_name(folder, monkeypatch):
    about = folder / "fruits-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: fruits\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        textwrap.dedent("""\
        [coevo.envs]
        fruit = market.fruit:Fruit
        vegetable = other:Vegetable
        """)
    )
    monkeypatch.syspath_prepend(folder)
    before = own_modules(load_recipe("homerules-coevo-rl", ["env={type: fruit}"]))
    assert before.keys() == {"market.fruit"}
    (folder / "market" / "fruit.py").write_text("apple = 4\n")
    _own_modules.cache_clear()
    assert own_modules(load_recipe("homerules-coevo-rl", ["env={type: fruit}"])) != before


def test_functions_of_a_table_are_of_modules_too(folder):
    tasks = "env={type: rows, path: a.jsonl, reward: [{function: 'shop:one'}], tools: ['other:two']}"
    shipped = "env={type: rows, path: a.jsonl, reward: 'coevo.envs.rows.locker_rewards:opens'}"
    found = [own_modules(load_recipe("rows-grpo", [each, f"python_path=[{folder}]"])) for each in (tasks, shipped)]
    assert [set(each) for each in found] == [{"shop", "other"}, set()]
