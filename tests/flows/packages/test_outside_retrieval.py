"""An agent whose retrieval comes from another package: ``coevo serve`` loads it, and nothing else does."""

import pytest
from support import outside
from support.outside import fresh, imported  # noqa: F401
from support.packages import packaged
from support.worker import CONFIG, environment

from coevo.configs.load.load import validate
from coevo.flows.endpoint.model import Model
from coevo.records.draws import key
from coevo.tasks.package.agent import Agent
from coevo.tasks.package.package import Package
from coevo.tasks.package.signature import ANY_SEED
from coevo.utilities.errors import CoevoError

pytestmark = pytest.mark.usefixtures("fresh")


@pytest.fixture
def package(tmp_path):
    """A package of a run with two parts from outside; that of its update is gone."""
    settings = CONFIG.model_dump(mode="json")
    settings["bank"]["retrieval"] = {"type": "my_retrieval:Shared", "options": {"least": 1}}
    settings["update"]["advantage"] = {"type": "my_rank:Rank"}
    config = validate(settings | {"python_path": [str(outside.write(tmp_path, "bank.retrieval"))]}, "mine")
    return packaged(tmp_path, config).directory


def test_a_served_agent_retrieves_with_it_and_imports_no_other_part(package):
    model = Model(str(package))
    assert imported() == ["my_retrieval"]
    (task, *_) = environment().panel("seen-houses", 1).tasks
    row = {"instruction": task.instruction, "observation": "at hall", "history": [], "scope": task.scope,
           "kind": task.kind, "task": task.id}  # fmt: skip
    (reply,) = model.predict([row], {"seed": ANY_SEED})
    assert {"text", "action", "retrieved"} <= reply.keys()
    assert model._agent._index.search("microwave mug", task.scope, key("asked")) != []


def test_another_program_is_told_who_can_load_it_and_imports_nothing(package):
    with pytest.raises(CoevoError, match=r"^bank.retrieval.type = 'my_retrieval:Shared': comes from another package, "):
        Agent(Package(package))
    assert imported() == []
