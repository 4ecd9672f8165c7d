"""Names of what ``coevo evaluate`` plays."""

import pytest
from support.small_run import build

from coevo.flows.evaluation.evaluation_targets import kind_of
from coevo.lineage.workspace import Workspace
from coevo.utilities.errors import CoevoError


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    return build(tmp_path_factory.mktemp("named") / "workspace").workspace


@pytest.fixture(autouse=True)
def folders(tmp_path, monkeypatch):
    """A directory with the name of the run, and one with another name, in the working directory."""
    for name in ("first", "model", "first@1"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("first@2", "run"),
        ("first@best", "run"),
        ("./first", "directory"),
        ("model", "directory"),
        ("./first@1", "directory"),
        (".", "directory"),
        ("http://127.0.0.1:5005", "url"),
        ("https://agents.example/a", "url"),
    ],
)
def test_a_name_stands_for_one_thing(workspace, text, kind):
    assert kind_of(text, workspace) == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("first", "names a run and a directory: write ./first"),
        ("first@1", "names a run and a directory: write ./first@1"),
        ("./gone", "no such directory"),
        ("frist", "no directory has this name either"),
        ("file:///etc", "begins with http"),
        ("a b", "no directory has this name either"),
    ],
)
def test_what_names_two_things_or_none_is_refused(workspace, text, said):
    with pytest.raises(CoevoError) as refused:
        kind_of(text, workspace)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_run_needs_no_directory(tmp_path):
    with pytest.raises(CoevoError, match="No run 'nothing'"):
        kind_of("nothing", Workspace(tmp_path))
