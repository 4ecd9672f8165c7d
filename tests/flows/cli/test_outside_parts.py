"""Parts from other packages on the command line: shown, checked, confirmed before they are imported, and missed."""

import json
import shutil

import pytest
from support import outside, small_run
from support.outside import PARTS, forget, fresh, imported  # noqa: F401

from coevo.configs.trust_settings import chosen
from coevo.lineage.workspace import Workspace

RECIPE = small_run.RECIPE
NAMES = ",".join([*(f"{each}.{name}" for each in sorted(PARTS) for name in ("type", "options")), "python_path"])
pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    return outside.write(tmp_path / "parts")


@pytest.mark.parametrize("setting", PARTS)
def test_a_dry_run_shows_a_part_with_all_of_its_options(coevo, folder, setting):
    settings = outside.settings(folder, setting)
    done = coevo("run", RECIPE, *settings, "--dry-run", "--json")
    (part,) = json.loads(done.out)["parts"]
    assert (part["setting"], part["type"]) == (setting, outside.reference(setting))
    assert part["options"] == PARTS[setting][3]
    option, value = next(iter(PARTS[setting][3].items()))
    shown = coevo("run", RECIPE, *settings, "--dry-run").out
    assert f"part      {setting} is {outside.reference(setting)} {option}={value}: {part['summary']}\n" in shown


def test_a_built_in_recipe_shows_no_such_part(coevo):
    assert json.loads(coevo("run", RECIPE, "--dry-run", "--json").out)["parts"] == []


def test_a_dry_run_reports_how_lessons_enter_as_the_class_states_it(coevo, folder):
    settings = outside.settings(folder, "bank.admission")
    said = json.loads(coevo("run", RECIPE, *settings, "--dry-run", "--json").out)["notice"]
    assert said.startswith("bank.admission.type=my_admission:First admits lessons without evidence: nothing is")
    forget()
    module = folder / "my_admission.py"
    module.write_text(module.read_text().replace("    class Config", "    unproven = None\n\n    class Config", 1))
    assert json.loads(coevo("run", RECIPE, *settings, "--dry-run", "--json").out)["notice"] is None


@pytest.mark.parametrize("dry", [("--dry-run",), ()])
def test_a_wrong_option_or_part_is_refused_before_anything_is_written(refused, folder, tmp_path, dry):
    settings = ["update.advantage={type: 'my_rank:Rank', options: {scal: 2}}", f"python_path=[{folder}]"]
    said = refused("run", RECIPE, *settings, *dry, workspace=tmp_path / "none")
    assert "update.advantage.options: scal: no such key. Did you mean 'scale'?" in said
    said = refused("run", RECIPE, "bank.writer.type=my_rank:Rank", f"python_path=[{folder}]", *dry)
    assert "is a part of update.advantage; name a class derived from coevo.WriterPart" in said
    assert not (tmp_path / "none").exists()


def test_methods_shows_a_recipe_of_ones_own_beside_the_others(coevo, folder):
    path = folder / "mine.yaml"
    path.write_text(
        f"defaults: [recipes/{RECIPE}]\npython_path: [{folder}]\n"
        "update: {advantage: {type: 'my_rank:Rank', options: {scale: 2.0}}}\n"
        "bank: {retrieval: {type: 'my_retrieval:Shared', k: 3}, admission: {type: 'my_admission:First'}}\n"
        "schedule: {type: 'my_schedule:InTurn'}\n"
    )
    grpo, mine = json.loads(coevo("methods", "grpo", path, "--json").out)
    assert (grpo["parts"]["advantage"], mine["parts"]["advantage"]) == ("grpo", "my_rank:Rank scale=2")
    assert mine["parts"]["retrieval"] == "my_retrieval:Shared k=3"
    assert mine["parts"]["schedule"].startswith("my_schedule:InTurn, bank every ")
    assert (mine["parts"]["admission"], mine["parts"]["evidence"]) == ("my_admission:First", "none")
    assert "my_rank:Rank scale=2" in coevo("methods", path).out


def test_methods_lists_the_parts_of_installed_packages_without_importing_them(coevo, tmp_path, monkeypatch):
    assert "installed: " not in coevo("methods").out
    monkeypatch.syspath_prepend(outside.install(tmp_path))
    lines = [line for line in coevo("methods").out.splitlines() if line.startswith("installed: ")]
    assert lines == [
        f"installed: {each}.type=my-{each.rpartition('.')[2]} is {outside.reference(each)}" for each in sorted(PARTS)
    ]
    assert imported() == []


def test_an_installed_part_runs_dry_by_its_name(coevo, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(outside.install(tmp_path))
    done = coevo("run", RECIPE, "update.advantage.type=my-advantage", "--dry-run")
    assert "part      update.advantage is my-advantage scale=1.0: Centred ranks within the group.\n" in done.out


@pytest.fixture
def pulled(folder, tmp_path, coevo, monkeypatch, tracking_uri):
    """A workspace that has pulled a run with six parts from outside."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", tracking_uri)
    small_run.build(tmp_path / "theirs", overrides=outside.settings(folder))
    assert coevo("push", tmp_path / "remote", "--workspace", tmp_path / "theirs").code == 0
    done = coevo("pull", tmp_path / "remote", "--workspace", tmp_path / "mine")
    for name in NAMES.split(","):
        assert f"confirm before use: {name} = " in done.out
    assert imported() == []
    return tmp_path / "mine"


READING = (
    ("runs",),
    ("log", "first"),
    ("compare", "first@2", "first@3"),
    ("bank", "log", "first"),
    ("bank", "show", "first"),
    ("bank", "why", "first", small_run.MUG.id),
    ("report", "first", "--output", "{at}/report.html"),
    ("rollback", "first", "--to", "2"),
    ("branch", "first", "mine", "update.optimizer.lr=1e-5"),
    ("fsck",),
)


def test_a_pulled_run_is_read_without_trust_and_acts_only_with_it(pulled, coevo, refused):
    for arguments in READING:
        done = coevo(*(each.replace("{at}", str(pulled)) for each in arguments), "--workspace", pulled)
        assert (done.code, imported()) == (0, []), (arguments, done.err)
    for act in (("resume", "first"), ("evaluate", "first"), ("bank", "search", "first", "heat mug")):
        said = refused(*act, workspace=pulled)
        assert 'bank.retrieval.type = "my_retrieval:Shared" (coevo imports it)' in said
        assert 'update.advantage.options = {"scale": 2.0} (coevo passes them to that code)' in said
        assert imported() == []
    done = coevo("bank", "search", "first", "mug safe", "--trust", NAMES, "--workspace", pulled)
    assert (done.code, imported()) == (0, ["my_retrieval"]), done.err
    assert "mug" in done.out


def test_a_branch_with_another_part_needs_the_same_trust_and_is_checked(pulled, coevo, refused):
    other = "update.advantage={type: 'my_rank:Rank', options: {scal: 3}}"
    assert "--trust" in refused("branch", "first", "mine", other, workspace=pulled)
    assert imported() == []
    place = Workspace(pulled)
    place.trust.confirm("first", chosen(place.existing("first").read_config()))
    assert "scal: no such key. Did you mean 'scale'?" in refused("branch", "first", "mine", other, workspace=pulled)
    assert coevo("branch", "first", "mine", other.replace("scal", "scale"), "--workspace", pulled).code == 0
    assert place.existing("mine").read_config().update.advantage.options == {"scale": 3}


def test_a_run_whose_parts_are_gone_is_read_beside_others_and_cannot_run(folder, coevo, refused, tmp_path):
    place = tmp_path / "workspace"
    small_run.build(place, overrides=outside.settings(folder))
    small_run.build(place, "other")
    shutil.rmtree(folder)
    folder.mkdir()
    for arguments in (*READING, ("compare", "first", "other"), ("log", "other"), ("bank", "search", "other", "mug")):
        done = coevo(*(each.replace("{at}", str(place)) for each in arguments), "--workspace", place)
        assert done.code == 0, (arguments, done.err)
    said = refused("bank", "search", "first", "mug", workspace=place)
    assert "bank.retrieval.type = 'my_retrieval:Shared': my_retrieval cannot be imported" in said
    assert "cannot be imported (No module named 'my_" in refused(
        "resume", "first", "--iterations", "9", workspace=place
    )


def test_each_retrieval_is_measured_beside_the_run_s_own(folder, coevo, tmp_path):
    small_run.build(tmp_path / "workspace", overrides=outside.settings(folder, "bank.retrieval"))
    done = coevo("bank", "retrieval", "first", "--json", "--workspace", tmp_path / "workspace")
    assert "my_retrieval:Shared" in {row["retrieval"] for row in json.loads(done.out)["rows"]}


def test_a_dry_run_says_what_of_a_part_is_not_in_its_time(folder, coevo):
    writer = "{type: 'my_writer:Feedback', model: {type: endpoint, url: 'http://a/v1', model: m}}"
    module = folder / "my_admission.py"
    module.write_text(module.read_text().replace("    class Config", "    needs_replay = True\n\n    class Config", 1))
    settings = [f"bank.writer={writer}", "bank.admission.type=my_admission:First", f"python_path=[{folder}]"]
    said = json.loads(coevo("run", RECIPE, *settings, "--dry-run", "--json").out)
    assert {"writing", "judging"} <= set(said["untimed"])
    for what in (
        "the answers to bank.writer.type=my_writer:Feedback",
        "the replays of bank.admission.type=my_admission",
    ):
        assert any(each.startswith(what) for each in said["notices"]), what
