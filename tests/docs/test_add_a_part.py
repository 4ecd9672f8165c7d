"""The worked example of docs/add-a-part.md, applied to a copy of the source tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOUSE = (
    "benchmarks", "coevo", "configs", "docs", "envs", "flows", "lineage", "memory", "models", "records", "tasks",
    "tests", "utilities",
)  # fmt: skip
BLOCK = re.compile(r"^```(?P<kind>\w+) (?P<file>\S+/\S+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks():
    return list(BLOCK.finditer((ROOT / "docs/add-a-part.md").read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree to which the page was applied."""
    copy = tmp_path_factory.mktemp("tree")
    for folder in HOUSE:
        left_out = shutil.ignore_patterns("__pycache__", "results")
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", copy)
    for block in blocks():
        if block["kind"] == "diff":
            git = ["git", "apply", "--whitespace=error-all", "-"]
            subprocess.run(git, cwd=copy, input=block["text"], text=True, check=True, env=outside(copy))
        else:
            assert not (copy / block["file"]).exists()
            (copy / block["file"]).write_text(block["text"], encoding="utf-8")
    return copy


def outside(copy):
    """Where git does not look for a repository above the copy, and Python finds the copy first."""
    return os.environ | {"GIT_CEILING_DIRECTORIES": str(copy.parent), "PYTHONPATH": str(copy)}


def python(tree, *arguments):
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=tree, env=outside(tree), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_part_is_a_file_its_configuration_its_test_and_two_rows():
    touched = [block["file"] for block in blocks()]
    assert touched == [
        "models/advantages/rank.py",
        "models/advantages/__init__.py",
        "configs/update/advantage_config.py",
        "tests/models/advantages/test_rank.py",
        "docs/papers.md",
        "configs/methods/rank.yaml",
        "tests/configs/test_methods.py",
    ]


TESTS = (
    "tests/models/advantages/test_rank.py",
    "tests/models/advantages/test_estimate.py",
    "tests/utilities/test_part_registry.py",
    "tests/docs/test_papers.py",
    "tests/configs/test_methods.py",
    "tests/configs/load/test_load.py::test_every_setting_is_documented",
)


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_its_own_tests_pass_and_those_of_all_parts(tree):
    """As somebody runs who has followed the page."""
    new = ("-k", "not test_estimate or rank")  # of the tests of all advantages, those of the new one
    said = python(tree, "pytest", *TESTS, *new, "-p", "no:cacheprovider", "-p", "no:xdist", "-vv")
    assert "FAILED" not in said
    for passed in (
        "test_rank.py::test_values_worked_out_by_hand",
        "test_estimate.py::test_rewards_that_say_nothing_mean_nothing_at_any_length[rank]",
        "test_part_registry.py::test_each_type_of_the_schema_has_its_part[update.advantage.type]",
        "test_papers.py::test_a_named_function_exists[coevo.models.advantages.rank-advantages]",
        "test_papers.py::test_every_part_has_a_row[Advantages]",
        "test_papers.py::test_every_value_that_a_recipe_sets_otherwise_is_stated",
        "test_methods.py::test_a_method_has_the_values_of_its_paper[rank]",
        "test_load.py::test_every_setting_is_documented",
    ):
        assert f"{passed} PASSED" in said


def test_a_method_made_with_it_appears(tree):
    grpo, rank = json.loads(python(tree, "coevo.flows", "methods", "grpo", "rank", "--json"))
    assert (grpo["parts"]["advantage"], rank["parts"]["advantage"]) == ("grpo", "rank")


def test_it_is_written_as_the_rest_is(tree):
    python(tree, "ruff", "check", ".", "--no-cache")
    python(tree, "ruff", "format", "--check", ".", "--no-cache")
