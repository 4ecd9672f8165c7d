"""Packages in a real registry, on a database in a temporary folder."""

import shutil
from pathlib import Path

import pytest
import yaml
from support.dying import Killed, dying
from support.packages import ORIGIN, packaged

from coevo.configs.load.load import load_recipe
from coevo.tasks.package.champion import champion, judge, make_champion, record, restore
from coevo.tasks.package.model_registry import Registered, fetch, find, pins, register
from coevo.tasks.package.model_registry import packaged as package_in
from coevo.tasks.publish.mlflow.tracker import Placement, Tracker
from coevo.tasks.publish.mlflow.tracking_store import TrackingStore, client, tracking_store
from coevo.utilities.errors import CoevoError

TAGS = {"coevo.run": "first", "coevo.revision": "2"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield tracking_store(tmp_path_factory.mktemp("registry"))


@pytest.fixture(scope="module")
def household(store, tmp_path_factory):
    """Versions 1 to 3 of the model ``household``; what they were packed from is gone."""
    root = tmp_path_factory.mktemp("packed")
    package = packaged(root)
    placement = Tracker(store, "homerules", "first", "abc").placement()
    versions = [register(store, "household", package, placement, TAGS) for _ in range(3)]
    shutil.rmtree(root)
    return versions


@pytest.fixture
def vacant(store, household):
    """The model, without any champion."""
    registry = client(store)
    registry.delete_registered_model_alias("household", "champion")
    registry.delete_registered_model_tag("household", "coevo.champions")
    return household


def test_versions_count_and_are_tagged(store, household):
    assert household == [Registered("household", number) for number in (1, 2, 3)]
    known = client(store).get_model_version("household", "2")
    assert known.tags.items() >= TAGS.items()
    assert find(store, "household/2") == find(store, "models:/household/2") == household[1]


def test_a_version_is_complete(store, household, tmp_path):
    model = fetch(store, household[0], tmp_path / "fetched")
    package = package_in(model)
    assert package.origin == ORIGIN
    assert package.policy().model is not None
    assert len(package.index().search("task heat mug", "lotus")) == 2
    described = yaml.safe_load((model / "MLmodel").read_text())
    assert {"inputs", "outputs", "params"} <= described["signature"].keys()
    assert described["flavors"]["python_function"]["model_code_path"].endswith("mlflow/agent.py")
    assert (model / "input_example.json").is_file()
    written = (model / "requirements.txt").read_text().splitlines()
    assert {"mlflow==3.17.2", "torch==2.13.0"} <= set(written)
    assert all("=" in pin or "<" in pin for pin in written)
    carried = {path.relative_to(model / "code").as_posix() for path in (model / "code").rglob("*")}
    assert {"coevo/tasks/package/pyfunc.py", "coevo/memory/retrieval/index.py"} <= carried
    assert not any("__pycache__" in path for path in carried)


def test_what_a_kill_left_without_a_version_gets_one(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    store = tracking_store(tmp_path)
    placement = Tracker(store, "half", "first", "abc").placement()
    registry, package = client(store), packaged(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(registry), "create_logged_model", dying(type(registry).create_logged_model))
        with pytest.raises(Killed):
            register(store, "half", package, placement, TAGS)
    for number, logged in ((1, 1), (2, 2)):
        assert register(store, "half", package, placement, TAGS) == Registered("half", number)
        assert [made.status for made in registry.search_logged_models([placement.experiment])] == ["READY"] * logged
    sources = {version.source for version in registry.search_model_versions("name='half'")}
    assert sources == {made.artifact_location for made in registry.search_logged_models([placement.experiment])}


def test_a_model_of_mlflow_is_linked_to_the_run_that_it_comes_from(store, tmp_path):
    # MLflow's own experiment, "0", would keep artifacts in the working directory.
    experiment = client(store).create_experiment("linked", artifact_location=store.artifacts)
    run = client(store).create_run(experiment).info.run_id
    version = register(store, "linked", packaged(tmp_path), Placement(experiment, run), TAGS)
    assert client(store).get_model_version("linked", str(version.version)).run_id == run


def test_retrieval_by_embedding_asks_for_its_extra(tmp_path):
    assert not any("sentence" in pin for pin in pins(packaged(tmp_path)))
    (tmp_path / "other").mkdir()
    config = load_recipe("homerules-coevo-rl", ["bank.retrieval.type=embedding"])
    assert any("sentence-transformers==6.2" in pin for pin in pins(packaged(tmp_path / "other", config)))


@pytest.mark.parametrize(
    ("mention", "message"),
    [
        ("household", "write MODEL/VERSION or MODEL@ALIAS"),
        ("nobody/1", "model 'nobody' is not registered: registered are household"),
        ("household/9", "has no version 9: it has 1, 2, 3"),
        ("household@best", "has no alias 'best': it has"),
    ],
)
def test_what_is_not_there_is_named_in_one_line(store, household, mention, message):
    with pytest.raises(CoevoError, match=message) as caught:
        find(store, mention)
    assert "\n" not in str(caught.value)


def test_the_champion_moves_on_and_back(store, vacant, tmp_path):
    first, second, _ = vacant
    assert champion(store, "household") is None
    make_champion(store, first, None, None)
    assert find(store, "household@champion") == first
    verdict = judge(panel(), [True] * 4, [False] * 4, 0.0)
    make_champion(store, second, 1, verdict)
    assert find(store, "household@champion") == second
    tags = client(store).get_model_version("household", "2").tags
    assert tags["coevo.gate.against"] == "1"
    assert tags["coevo.gate.difference"] == "+1.0000 [-0.2047, +1.0000]"  # 1 - 2 (1 - .025^(1/4))
    assert restore(store, "household") == first
    assert find(store, "household@champion") == first
    with pytest.raises(CoevoError, match="no version was champion before 1"):
        restore(store, "household")


def test_a_champion_that_changed_meanwhile_is_not_replaced(store, vacant):
    first, second, third = vacant
    make_champion(store, first, None, None)
    make_champion(store, second, 1, judge(panel(), [True] * 4, [False] * 4, 0.0))
    with pytest.raises(CoevoError, match="its champion is now version 2: promote again"):
        make_champion(store, third, 1, judge(panel(), [True] * 4, [False] * 4, 0.0))
    assert champion(store, "household") == 2


def test_an_alias_set_by_other_means_can_be_taken_back(store, vacant):
    client(store).set_registered_model_alias("household", "champion", "3")
    make_champion(store, vacant[0], 3, judge(panel(), [True] * 4, [False] * 4, 0.0))
    assert restore(store, "household") == vacant[2]


def test_who_failed_keeps_the_verdict_and_no_alias(store, vacant):
    make_champion(store, vacant[0], None, None)
    record(store, vacant[1], 1, judge(panel(), [False] * 4, [True] * 4, 0.0))
    assert champion(store, "household") == 1
    assert client(store).get_model_version("household", "2").tags["coevo.gate.passed"] == "False"


def test_the_bound_is_that_of_the_paired_differences():
    # Gains 1, 1, 0, 0: mean 1/2, deviation sqrt(1/3), half width 3.18245 * .57735 / 2 = .91869 by t with 3 degrees.
    verdict = judge(panel(), [True, True, True, False], [False, False, True, False], 0.0)
    assert (verdict.success, verdict.against, verdict.difference) == (0.75, 0.25, 0.5)
    assert verdict.low == pytest.approx(0.5 - 0.91869, abs=1e-5)
    assert verdict.high == pytest.approx(0.5 + 0.91869, abs=1e-5)
    assert not verdict.passed
    assert judge(panel(), [True] * 100, [False] * 100, 0.9).passed
    assert not judge(panel(), [True] * 3, [False] * 3, 0.0).passed  # three tasks may all be won by chance
    assert not judge(panel(), [True] * 3, [True] * 3, 0.0).passed


def panel():
    from support.worker import environment

    return environment().panel("seen-houses", 4)


def test_a_registry_that_cannot_be_reached_is_one_line(tmp_path):
    lost = TrackingStore(f"sqlite:///{tmp_path / 'not there' / 'mlflow.db'}", None, tmp_path / "lock")
    with pytest.raises(CoevoError, match="does not answer") as caught:
        find(lost, "household/1")
    assert "\n" not in str(caught.value)
    assert not Path(tmp_path / "not there").exists()
