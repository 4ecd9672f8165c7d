"""The program of an actor, without Ray: a part is made, called, and its errors are lines."""

import os
import pickle
from pathlib import Path

from coevo.utilities.cluster.node_agent import NodeAgent


def hosting(part, *arguments):
    agent = NodeAgent([])
    return agent, agent.host(part, pickle.dumps(arguments))


def test_a_part_is_made_and_called():
    agent, made = hosting("collections:Counter", "aab")
    assert made == (os.getpid(), "")
    assert agent.call("most_common", 1) == ([("a", 2)], "")


def test_what_a_node_lacks_is_one_line():
    for part in ("no_such_module:Part", "collections:NoSuchPart"):
        _, made = hosting(part)
        assert made.value == 0
        assert "install what the run needs on this node, too" in made.error
        assert "\n" not in made.error


def test_a_refusal_of_a_part_travels_as_its_line():
    agent, made = hosting("coevo.lineage.workspace:Workspace", Path("nowhere"))
    assert made.error == ""
    assert "nowhere" in agent.call("existing", "first").error


def test_folders_of_the_run_stand_behind_those_of_the_node(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [*os.sys.path])
    (tmp_path / "collections.py").write_text("raise SystemExit")
    (tmp_path / "only_there.py").write_text("class Part:\n    def value(self):\n        return 7\n")
    agent = NodeAgent([str(tmp_path)])
    assert agent.host("only_there:Part", pickle.dumps(())).error == ""
    assert agent.call("value").value == 7
