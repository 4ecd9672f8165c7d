"""A version that waits: the alias moves when a person says so, and not otherwise."""

import pytest

from coevo.tasks.package.champion import ASKS, BY, ask, asked, champion, make_champion, needs_a_person, settle
from coevo.tasks.package.model_registry import Registered
from coevo.tasks.publish.mlflow.tracking_store import client, tracking_store
from coevo.tasks.run.approval import Vote
from coevo.utilities.errors import CoevoError


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        yield tracking_store(tmp_path_factory.mktemp("registry"))


@pytest.fixture
def store(empty, tmp_path):
    """A registry with three versions of ``agent``; the first is champion, the others ask."""
    store, registry = empty, client(empty)
    registry.create_registered_model("agent")
    for number, tags in enumerate(({}, {ASKS: "person"}, {ASKS: "person"})):
        registry.create_model_version("agent", str(tmp_path / str(number)), tags=tags)
    make_champion(store, Registered("agent", 1), None, None)
    yield store
    registry.delete_registered_model("agent")


def test_a_version_waits_until_a_person_has_decided(store):
    first, second, third = (Registered("agent", number) for number in (1, 2, 3))
    assert [needs_a_person(store, version) for version in (first, second, third)] == [False, True, True]
    for version in (second, third):
        ask(store, version, 1, None)
    assert [(each.version, each.over) for each in asked(store)] == [(second, 1), (third, 1)]
    assert champion(store, "agent") == 1
    settle(store, second, Vote(False, "ada"))
    assert (champion(store, "agent"), [each.version for each in asked(store)]) == (1, [third])
    settle(store, third, Vote(True, "ada"))
    assert (champion(store, "agent"), asked(store)) == (3, [])
    assert client(store).get_model_version("agent", "3").tags[BY] == "ada"
    with pytest.raises(CoevoError, match="agent/2 has nothing to approve"):
        settle(store, second, Vote(True, "ada"))


def test_an_approval_that_was_killed_after_the_alias_had_moved_is_carried_out(store):
    second = Registered("agent", 2)
    ask(store, second, 1, None)
    make_champion(store, second, 1, None)
    settle(store, second, Vote(True, "ada"))
    assert (champion(store, "agent"), asked(store)) == (2, [])


def test_a_version_that_has_not_played_the_champion_of_today_has_to_be_promoted_again(store):
    second = Registered("agent", 2)
    ask(store, second, 1, None)
    make_champion(store, Registered("agent", 3), 1, None)
    with pytest.raises(CoevoError, match="its champion is now version 3: promote again"):
        settle(store, second, Vote(True, "ada"))
    assert champion(store, "agent") == 3
