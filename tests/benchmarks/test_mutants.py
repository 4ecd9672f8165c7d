"""Random mutants: which tests are asked, and whether what they answer is counted."""

import shutil

import pytest

from benchmarks.bench import ROOT
from benchmarks.mutation import mutants
from benchmarks.mutation.mutant_trial import mirrored, opened
from benchmarks.mutation.sample import Mutant, draw
from coevo.utilities.errors import CoevoError

SOURCE = "def bigger(a, b):\n    return a > b\n\n\ndef unused(a: int | None):\n    return a + 1\n"
TEST = "from memory.shelf.sizes import bigger\n\n\ndef test_it():\n    assert bigger(2, 1) and not bigger(1, 2)\n"


@pytest.fixture
def project(tmp_path):
    """A project of one module, half of which is tested."""
    files = {
        "memory/shelf/sizes.py": SOURCE,
        "tests/memory/shelf/test_sizes.py": TEST,
        "tests/memory/test_text.py": "",
        "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\nmarkers = ["full", "soak"]\n',
    }
    for name, text in files.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "project"


def test_tests_of_a_module_are_its_file_its_folder_and_the_files_of_its_room(project):
    folder, room = ("tests/memory/shelf",), ("tests/memory/test_text.py",)
    assert mirrored(project, "memory/shelf/sizes.py") == [("tests/memory/shelf/test_sizes.py",), folder, room]
    assert mirrored(project, "memory/shelf/other.py") == [folder, room]
    assert mirrored(project, "memory/text.py") == [room, ("tests/memory",)]


def test_a_mutant_that_does_the_same_has_a_reason():
    assert "memory" in mutants.reason("memory/stats.py", "@dataclass(frozen=True, slots=False)")
    assert mutants.reason("memory/stats.py", "visits: int = 0") == ""


def test_a_survivor_is_listed_and_does_not_count_as_noticed(capsys):
    row = ["memory/stats.py:26", "visits: int = 1", "visits: int = 0"]
    mutants.report(1, [{"mutants": 3, "survivors": [row]}, {"mutants": 1, "survivors": []}])
    shown = capsys.readouterr().out
    assert "tests notice 3 of 4, 75.0%" in shown
    assert all(part in shown for part in row)


@pytest.mark.soak
def test_a_change_is_noticed_where_a_test_fails_and_undone_afterwards(project):
    pytest.importorskip("cosmic_ray")
    shutil.copytree(ROOT / "benchmarks" / "mutation", project / "benchmarks" / "mutation")
    found = {mutant.position: mutant for seed in range(40) for mutant in draw(project, 3, seed)}
    assert {line for line, _ in found} == {2, 6}, "an annotation is no place for a mutant"
    noticed = Mutant("memory/shelf/sizes.py", (2, 13), "core/ReplaceComparisonOperator_Gt_LtE", 0)
    survives = Mutant("memory/shelf/sizes.py", (6, 13), "core/ReplaceBinaryOperator_Add_Sub", 0)
    with opened(project) as trial:
        assert trial.notices(noticed)
        assert not trial.notices(survives)
        assert (trial.root / "memory/shelf/sizes.py").read_text() == SOURCE
        (trial.root / "tests/memory/shelf/test_other.py").write_text("def test_it():\n    assert False\n")
        with pytest.raises(CoevoError, match="tests/memory/shelf fails without any change"):
            trial.notices(survives)
