"""Counts of the structure benchmark, on a tree that was counted by hand."""

import subprocess

import pytest

from benchmarks.structure import Tree

FILES = {
    "coevo/__init__.py": "from coevo.tasks.steps.judge import judge\n",
    "tasks/__init__.py": "",
    "tasks/steps/__init__.py": "",
    "tasks/steps/judge.py": "from coevo.tasks.steps import retire\nclass Rule: ...\ndef judge(): ...\n",
    "tasks/steps/retire.py": "from coevo.memory.rule import Rule\n",
    "memory/__init__.py": "",
    "memory/rule.py": "class Rule:\n    pass\n",
    "memory/judge.py": "PART = 'coevo.memory.rule'\n",
    "envs/__init__.py": "from coevo.envs.house import house\n",
    "envs/house.py": "house = 1\n",
}


@pytest.fixture
def tree(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    for command in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return Tree(tmp_path)


def test_importers_are_counted_by_module_and_those_below_envs_are_left_out(tree):
    assert set(tree.with_one_importer()) == {"coevo.tasks.steps.judge", "coevo.tasks.steps.retire"}
    assert tree.importers["coevo.memory.rule"] == {"coevo.tasks.steps.retire", "coevo.memory.judge"}
    assert tree.imports_between_steps() == 1


def test_repeated_names_are_counted(tree):
    assert {name: n for name, n in tree.file_names().items() if n > 1} == {"judge.py": 2}
    assert {name: n for name, n in tree.class_names().items() if n > 1} == {"Rule": 2}
