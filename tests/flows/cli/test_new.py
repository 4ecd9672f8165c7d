"""``coevo new`` writes packages whose tests pass as written, and refuses in one line what it cannot write."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.outside import fresh  # noqa: F401

from coevo.configs.load.open_parts import open_part
from coevo.flows.scaffold.templates import PARTS
from coevo.utilities.errors import CoevoError

pytestmark = pytest.mark.usefixtures("fresh")
NEW = {
    **{kind: ("part", f"my-{kind}", "--kind", kind) for kind in PARTS},
    "environment": ("environment", "my-lockers"),
    "recipe": ("recipe", "my-recipe"),
}
"""Arguments by what is written."""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return Path()


def written():
    return sorted(str(path) for path in Path().rglob("*"))


@pytest.mark.parametrize("what", NEW)
@pytest.mark.timeout(300)
def test_the_test_of_a_new_package_passes_as_written(coevo, what):
    done = coevo("new", *NEW[what])
    assert (done.code, done.err) == (0, "")
    files, (test, use) = done.out.splitlines()[:-2], done.out.splitlines()[-2:]
    assert sorted(files) == [path for path in written() if Path(path).is_file()]
    folder = NEW[what][1]
    assert (test, use.startswith("Use it with: coevo ")) == (f"Test it with: python -m pytest {folder}", True)
    command = [sys.executable, "-m", "pytest", folder, "-p", "no:cacheprovider", "-p", "no:xdist", "-q"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("kind", PARTS)
def test_its_entry_point_is_that_of_its_kind(coevo, kind):
    coevo("new", *NEW[kind])
    project = tomllib.loads(Path(f"my-{kind}/pyproject.toml").read_text())
    module, cls = f"my_{kind}", f"My{kind.capitalize()}"
    assert project["project"]["entry-points"] == {PARTS[kind].group: {f"my-{kind}": f"{module}:{cls}"}}
    assert (project["project"]["name"], project["tool"]["setuptools"]["py-modules"]) == (f"my-{kind}", [module])


def test_the_command_that_is_named_runs_it(coevo):
    coevo("new", "part", "my-rank", "--kind", "advantage")
    done = coevo(
        "run", "homerules-coevo-rl", "update.advantage.type=my_rank:MyRank", "python_path=[my-rank]", "--dry-run"
    )
    assert "part      update.advantage is my_rank:MyRank scale=1.0: Return minus the mean of its group.\n" in done.out


REFUSED = {
    "blanks": (("part", "my part", "--kind", "writer"), "'my part' is no name of a package: use at most 60 lower-case"),
    "a path": (("environment", "../mine"), "is no name of a package"),
    "a word with a capital": (("environment", "none"), "Python has a module or a word none"),
    "upper case": (("recipe", "Mine"), "is no name of a package"),
    "an option": (("recipe", "mine-"), "is no name of a package"),
    "much": (("recipe", "m" * 61), "is no name of a package"),
    "a module": (
        ("part", "json", "--kind", "writer"),
        "has a module or a word json: choose another name, such as my-j",
    ),
    "a word": (("part", "class", "--kind", "reward"), "has a module or a word class: choose another name"),
    "a built-in part": (
        ("part", "grpo", "--kind", "advantage"),
        "update.advantage.type has this name in coevo: choose",
    ),
    "a built-in environment": (("environment", "homerules"), "env.type has this name in coevo: choose another"),
    "another kind": (("part", "mine", "--kind", "estimator"), "No kind of part 'estimator'. Choose one of advantage, "),
    "no kind": (("part", "mine"), "--kind"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_written_is_one_line(refused, case):
    arguments, says = REFUSED[case]
    assert says in refused("new", *arguments)
    assert written() == []


@pytest.mark.parametrize("what", ["writer", "environment", "recipe"])
def test_what_is_there_already_stays(refused, what):
    name = NEW[what][1]
    Path(name).mkdir()
    assert f"{name} exists: choose another name, or remove it first" in refused("new", *NEW[what])
    assert written() == [name]


def test_a_package_is_written_whole_or_not_at_all(refused, monkeypatch):
    write = Path.write_text

    def full(path, *arguments, **named):
        if path.name.startswith("test_"):
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **named)

    monkeypatch.setattr(Path, "write_text", full)
    assert "cannot be written: No space left on device" in refused("new", *NEW["writer"])
    assert written() == []


@pytest.mark.parametrize(
    ("setting", "kind", "says"),
    [
        ("update.rewards", "a:B", "No section with parts 'update.rewards'. Did you mean 'update.reward'?"),
        ("update.advantage", "gea", "update.advantage.type = 'gea': no installed package has this part: install "),
        ("schedule", "a:7", 'schedule: type = "a:7": '),
    ],
)
def test_a_part_that_cannot_be_opened_by_its_section_is_one_line(setting, kind, says):
    with pytest.raises(CoevoError) as caught:
        open_part(setting, kind)
    assert str(caught.value).startswith(says)
    assert "\n" not in str(caught.value)
