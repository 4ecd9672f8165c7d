"""Attacks through the model registry: whoever can write to it has nothing loaded, served, promoted or restored."""

import json
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from support.packages import packaged

from coevo.flows.console.trust_prompt import consent_by
from coevo.flows.endpoint.request_limits import DEFAULT
from coevo.flows.packages.promotion import PromotionTerms, demote, promote
from coevo.flows.packages.proof import prove
from coevo.flows.packages.serving import Address, serve
from coevo.flows.pending import decide_model
from coevo.lineage.workspace import Workspace
from coevo.tasks.package.champion import APPROVAL, HISTORY, OVER, champion
from coevo.tasks.package.model_registry import Registered, fetch, find, register
from coevo.tasks.package.package import Package
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store
from coevo.tasks.run.approval import Vote
from coevo.utilities.errors import CoevoError

pytestmark = pytest.mark.full
MODEL = "household"
SCRIPT = 'open({marker!r}, "w").close()\n'


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace that has registered one package, which is champion."""
    workspace = Workspace(tmp_path_factory.mktemp("registry"))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        store = tracking_store(workspace.root)
        own = packaged(tmp_path_factory.mktemp("own"))
        placement = Tracker(store, "homerules", "first", "abc").placement()
        register(store, MODEL, own, placement, {})
        assert promote(f"{MODEL}/1", PromotionTerms(), workspace).passed
        yield workspace


@pytest.fixture
def store(workspace):
    return tracking_store(workspace.root)


@pytest.fixture
def forge(workspace, store, tmp_path):
    """Register a version with other files, as a client of MLflow can, and make it champion by its alias."""

    def forging(change=None, source=None):
        folder = workspace.root / "mlartifacts" / "homerules" / f"forged-{tmp_path.name}"
        copied = fetch(store, Registered(MODEL, 1), folder)
        if change is not None:
            change(copied)
        made = client(store).create_model_version(MODEL, source or copied.as_uri())
        client(store).set_registered_model_alias(MODEL, "champion", made.version)
        return Registered(MODEL, int(made.version))

    yield forging
    registry = client(store)
    registry.set_registered_model_alias(MODEL, "champion", "1")
    registry.set_registered_model_tag(MODEL, HISTORY, "1")
    for version in registry.search_model_versions(f"name='{MODEL}'"):
        if version.version != "1" and int(version.version) != 1:
            registry.delete_model_version(MODEL, str(version.version))


def package_in(model):
    return model / "artifacts" / "package"


def weights(model):
    file = package_in(model) / "policy" / "model.safetensors"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def setting(name, value):
    def change(model):
        file = package_in(model) / "config.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))

    return change


def origin(model):
    file = package_in(model) / "origin.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"run": "\x1b[2J"}))


def link(model):
    file = package_in(model) / "policy" / "config.json"
    file.unlink()
    file.symlink_to("/etc/hostname")


def extra(model):
    (package_in(model) / "sitecustomize.py").write_text("raise SystemExit\n")


def renamed(model):
    (package_in(model) / "tools.json").rename(package_in(model) / "tools.json\n")


CHANGES = {
    "one bit of the weights": (weights, "no `coevo package` of this workspace made it"),
    "another seed": (setting("seed", 7), "no `coevo package` of this workspace made it"),
    "a folder to import from": (setting("python_path", ["/tmp"]), "made it.*python_path"),
    "an encoder above the package": (setting("bank", {"retrieval": {"encoder": {"model": "encoders/../../x"}}}), "."),
    "a run's name that moves the cursor": (origin, "origin.json is damaged"),
    "no object": (lambda model: (package_in(model) / "config.json").write_text("[]"), "config.json is damaged"),
    "nested": (lambda model: (package_in(model) / "config.json").write_text("[" * 10**5), "config.json is damaged"),
    "not UTF-8": (lambda model: (package_in(model) / "config.json").write_bytes(b"\xff\xfe"), "config.json is damaged"),
    "a file more": (extra, "no `coevo package` of this workspace made it"),
    "a file renamed": (renamed, "."),
    "nothing": (lambda model: shutil.rmtree(package_in(model)), "holds no"),
}
"""Files that are not those of the package, and the refusal."""
PLACES = ("file:/etc", "file:///etc/ssl", "/etc", "./mlruns/0/x", "models:/m-1", "runs:/1/model", "file:../mlruns")
"""Sources of a version outside of the workspace's artifacts."""


def serve_it(workspace, version):
    with serve(f"{version.model}@champion", Address(), DEFAULT, workspace):
        pass


def demote_to(workspace, version):
    client(tracking_store(workspace.root)).set_registered_model_alias(MODEL, "champion", "1")
    client(tracking_store(workspace.root)).set_registered_model_tag(MODEL, HISTORY, f"{version.version} 1")
    demote(MODEL, workspace)


def approve(workspace, version):
    registry = client(tracking_store(workspace.root))
    registry.set_registered_model_alias(MODEL, "champion", "1")
    for name, value in ((APPROVAL, "waiting"), (OVER, "1")):
        registry.set_model_version_tag(MODEL, str(version.version), name, value)
    decide_model(version.name, Vote(True, "ada"), workspace)


def challenge(workspace, version):
    client(tracking_store(workspace.root)).set_registered_model_alias(MODEL, "champion", "1")
    promote(version.name, PromotionTerms(None, 2, -2.0), workspace)


def defend(workspace, version):
    promote(f"{MODEL}/1", PromotionTerms(None, 2, -2.0), workspace)


COMMANDS = {
    "serve": serve_it,
    "demote": demote_to,
    "approve": approve,
    "promote": challenge,
    "promote against it": defend,
}


def refused(call):
    with pytest.raises(CoevoError) as caught:
        call()
    line = str(caught.value)
    assert line.isprintable()
    return line


@pytest.mark.parametrize("change", CHANGES)
def test_other_files_are_refused_before_they_are_loaded(workspace, store, forge, tmp_path, change):
    alter, said = CHANGES[change]
    version = forge(alter)
    with pytest.raises(CoevoError, match=said):
        prove(store, [version], tmp_path, workspace)


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_acts_on_a_package_that_was_not_made_here(workspace, store, forge, command):
    version = forge(weights)
    line = refused(lambda: COMMANDS[command](workspace, version))
    assert "no `coevo package` of this workspace made it" in line
    assert "--trust package" in line
    assert champion(store, MODEL) in (1, version.version)
    assert not any((workspace.root / "scratch").glob("*"))


@pytest.mark.parametrize("source", PLACES)
def test_files_outside_of_the_registry_are_not_read(workspace, store, forge, tmp_path, source, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MLflow's client looks for some in a store of its own
    with suppress(Exception):  # MLflow itself refuses some
        version = forge(source=source)
        assert "the files of household/" in refused(lambda: prove(store, [version], tmp_path, workspace))
    assert not any(tmp_path.rglob("hostname"))


def test_a_link_among_the_files_is_not_followed_later(workspace, store, forge, tmp_path):
    refused(lambda: prove(store, [forge(link)], tmp_path, workspace))


def test_the_script_of_a_registered_model_never_runs(workspace, store, forge, tmp_path):
    marker = str(tmp_path / "ran")

    def script(model):
        for file in [*model.rglob("*.py"), model / "agent.py", model / "sitecustomize.py"]:
            file.write_text(SCRIPT.format(marker=marker))

    version = forge(script)
    with serve(f"{MODEL}@champion", Address(), DEFAULT, workspace) as served:
        assert served.name == version.name
    assert not Path(marker).exists()


@pytest.mark.parametrize("tag", ["x", "1 x", "-1 1", "1e3 1", "9" * 5000 + " 1", "\u0661 1"])
def test_a_history_that_others_wrote_is_refused_in_one_line(workspace, store, forge, tag):
    client(store).set_registered_model_tag(MODEL, HISTORY, tag)
    assert "coevo.champions names no version" in refused(lambda: demote(MODEL, workspace))


def test_a_digest_is_confirmed_by_name_for_one_version_and_one_content(workspace, store, forge, tmp_path):
    version = forge(weights)
    for number, folder in enumerate(("first", "second")):  # asked once, kept
        (tmp_path / folder).mkdir()
        consent = consent_by(None if number else "package", ask=False)
        (package,) = prove(store, [version], tmp_path / folder, workspace, consent)
        assert isinstance(package, Package)
    weights_again = workspace.root / "mlartifacts" / "homerules" / f"forged-{tmp_path.name}"
    file = next(weights_again.rglob("model.safetensors"))
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    (tmp_path / "third").mkdir()
    assert "--trust package" in refused(lambda: prove(store, [version], tmp_path / "third", workspace))
    assert "no setting to confirm matches" in refused(
        lambda: prove(
            store, [find(store, f"{MODEL}/1")], tmp_path / "third", workspace, consent_by("package", ask=False)
        )
    )


def test_a_copy_of_the_workspace_still_knows_its_own_packages(workspace, tmp_path):
    copied = tmp_path / "copy"
    shutil.copytree(workspace.root, copied, ignore=shutil.ignore_patterns("scratch"))
    (tmp_path / "into").mkdir()
    store = tracking_store(copied)
    (package,) = prove(store, [Registered(MODEL, 1)], tmp_path / "into", Workspace(copied))
    assert package.origin.run == "first"
