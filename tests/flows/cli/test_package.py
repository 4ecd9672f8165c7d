"""``coevo package``, ``promote`` and ``demote`` on runs that were never trained: a real registry, a real gate."""

import json
import shutil
import signal

import pytest
from support import small_run
from support.packages import untrained
from support.runs import coevo as coevo_at

from coevo.tasks.package.model_registry import fetch, find, packaged
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A workspace with the runs ``first`` and ``other``, which plays in another world."""
    root = tmp_path_factory.mktemp("packages")
    policy = untrained(root / "policy")
    small_run.build(root, policy=policy)
    small_run.build(root, "other", ["env.world=3"], policy=policy)
    return root


@pytest.fixture
def call(coevo, path, monkeypatch):
    monkeypatch.setenv("COEVO_WORKSPACE", str(path))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    return coevo


@pytest.mark.full
def test_from_a_run_to_a_champion_and_back(call, path):
    made = call("package", "first@2", "household")
    assert (made.code, made.out.splitlines()) == (0, [
        "Registered first@2 as household/1",
        f"Serve it with: coevo serve household/1 --workspace {path}",
        f"Make it the champion, if it plays better: coevo promote household/1 --workspace {path}",
    ]), made.err  # fmt: skip
    row = json.loads(call("package", "first", "household", "--json").out)
    assert row == {
        "model": "household", "version": 2, "run": "first", "revision": 3, "success": {"seen-houses": 1.0}
    }  # fmt: skip
    crowned = call("promote", "household/1")
    assert (crowned.code, crowned.out) == (0, "household/1 is champion\n")

    kept = shutil.move(path / "runs" / "first", path / "away")  # packages need no run
    stays = call("promote", "household/2", "--tasks", "4")
    assert stays.code == 1, stays.err
    assert "seen-houses, 4 tasks: household/2 0.000, household/1 0.000, difference +0.000 [-0.602, +0.602]" in stays.out
    assert stays.out.splitlines()[-1] == "household/1 stays champion of household"
    passed = call("promote", "household/2", "--tasks", "12", "--margin", "-0.5", "--json")
    assert (passed.code, json.loads(passed.out)["promoted"], json.loads(passed.out)["against"]) == (0, True, 1)
    shutil.move(kept, path / "runs" / "first")

    assert "household/2 is the champion already" in call("promote", "household@champion").err
    assert call("demote", "household").out == "household/1 is champion again\n"
    assert "no version was champion before 1" in call("demote", "household").err

    call("package", "other", "household")
    assert "other@3 and the champion, first@2, play different tasks" in call("promote", "household/3").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("package", "first@9"), "revision 9 is not in run 'first': it has 0 to 3"),
        (("package", "nobody"), "No run 'nobody'"),
        (("package", "first", "a/b"), "'a/b' cannot name a model"),
        (("promote", "first"), "write MODEL/VERSION or MODEL@ALIAS"),
        (("serve", "nobody"), "No run 'nobody'"),
        (("serve", "first@9"), "revision 9 is not in run 'first'"),
        (("serve", "first", "--host", "192.0.2.1"), "choose another --port or --host"),
        (
            ("evaluate", "http://127.0.0.1:1", "--env", "first", "--bank", "none"),
            "--bank none: a served agent has its own bank",
        ),
        (("evaluate", "http://127.0.0.1:1", "--env", "first"), "does not answer"),
        (("evaluate", "http://127.0.0.1:1", "--env", "first@9"), "revision 9 is not in run 'first'"),
        (("evaluate", "http://127.0.0.1:1", "--env", "nobody"), "nobody"),
        (("evaluate", "http://127.0.0.1:1", "--env", "first", "--panel", "other-houses"), "entries of its own"),
        (("evaluate", "http://127.0.0.1:1", "--env", "first", "--panel", "attic"), "'attic' is no panel of homerules"),
    ],
)
def test_a_mistake_is_one_line(call, arguments, message):
    result = call(*arguments)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert message in result.err


@pytest.mark.parametrize(
    ("kill", "made"),
    [
        ("mlflow:MlflowClient.log_model_artifacts@1~0.01", 0),
        ("mlflow:MlflowClient.finalize_logged_model@1+", 0),
        ("mlflow:MlflowClient.create_registered_model@1+", 0),
        ("mlflow:MlflowClient.create_model_version@1+", 1),
    ],
)
@pytest.mark.full
def test_a_package_that_was_killed_and_is_repeated_is_one_version(call, path, kill, made, request):
    name = f"killed-{request.node.callspec.indices['kill']}"
    killed = coevo_at("package", "first@2", name, workspace=path, kill=kill)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    registry = client(tracking_store(path))
    assert len(registry.search_model_versions(f"name='{name}'")) == made
    for _ in range(2):
        again = call("package", "first@2", name)
        assert (again.code, again.out.splitlines()[0]) == (0, f"Registered first@2 as {name}/1"), again.err
    (version,) = registry.search_model_versions(f"name='{name}'")
    experiments = [each.experiment_id for each in registry.search_experiments()]
    logged = registry.search_logged_models(experiments, filter_string=f"tags.`coevo.model` = '{name}'")
    assert [(each.status, each.artifact_location) for each in logged] == [("READY", version.source)]
    assert call("promote", f"{name}/1").out == f"{name}/1 is champion\n"
    assert call("package", "first@3", name).out.splitlines()[0] == f"Registered first@3 as {name}/2"
    aliases = registry.get_registered_model(name).aliases
    assert {alias: int(number) for alias, number in aliases.items()} == {"champion": 1}
    assert "no version was champion before 1" in call("demote", name).err


def test_other_code_makes_another_version(call, monkeypatch):
    made = call("package", "first@1", "code")
    assert (made.code, call("package", "first@1", "code").out) == (0, made.out)
    monkeypatch.setattr("coevo.flows.packages.make_package.code_of", lambda *_: "other")
    assert call("package", "first@1", "code").out.splitlines()[0] == "Registered first@1 as code/2"


FOLDERS = ["100 %", "%41%20", "a#b", "#", "two words", "Üben ß", "日本 語", "a+b&c=d", "'quoted'", "x;y,z@1:2~"]


@pytest.mark.full
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_package_is_made_and_fetched_in_any_folder(coevo, path, tmp_path, monkeypatch, folder):
    root = tmp_path / folder
    shutil.copytree(path, root, symlinks=True, ignore=shutil.ignore_patterns("mlflow*", "mlartifacts"))
    monkeypatch.setenv("COEVO_WORKSPACE", str(root))
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    made = coevo("package", "other@2", "household")
    assert (made.code, made.err) == (0, "")
    store = tracking_store(root)
    fetched = fetch(store, find(store, "household/1"), tmp_path / "into")
    assert packaged(fetched).directory.is_dir()
