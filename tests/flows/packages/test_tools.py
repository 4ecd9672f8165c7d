"""A served agent of an environment with tools: calls are its actions, and unusable answers end episodes."""

import json

import pytest
from support import small_run
from support.endpoint import post, rows
from support.tools import ACTION, CALL, ToolHouse, parrot

from coevo.flows.endpoint.request_limits import DEFAULT
from coevo.flows.evaluation.evaluate_samples import SampleRequest, evaluate_samples
from coevo.flows.evaluation.evaluation_targets import TargetSettings
from coevo.flows.packages.serving import Address, serve
from coevo.lineage.workspace import Workspace
from coevo.models.policy.policy import save

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A workspace with a run whose policy calls a tool at every turn, and one whose policy never acts."""
    root = tmp_path_factory.mktemp("tools")
    for name, text in (("calls", CALL), ("idles", "hm")):
        save(parrot(text), root / f"policy-{name}")
        settings = [
            f"env={{type: '{ToolHouse.__module__}:ToolHouse'}}",
            *("context.style=conversation", "context.invalid_limit=3", "rollout.max_turns=4", "warmstart=null"),
            *("policy.type=pretrained", f"policy.path={root / f'policy-{name}'}"),
        ]
        small_run.build(root, name, settings, policy=root / f"policy-{name}")
    return Workspace(root)


def said(path, target, workspace, env=None):
    """Fields that an evaluation keeps of its episodes and their turns."""
    evaluate_samples(target, TargetSettings(env), SampleRequest("seen-houses", 3, output=path), workspace)
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    turns = [[(t["answer"], t["action"], t["no_action"], t["valid"]) for t in row["turns"]] for row in rows]
    return [(row["truncated"], row["cut"], row["success"], each) for row, each in zip(rows, turns, strict=True)]


@pytest.mark.parametrize(("run", "turns"), [("calls", 4), ("idles", 3)])
def test_episodes_through_the_endpoint_are_those_that_are_played_here(directory, run, turns, tmp_path):
    here = said(tmp_path / "here.jsonl", run, directory)
    row = {"instruction": "heat mug", "observation": "at hall"}
    idle = {"observation": "at hall", "action": "", "feedback": ""}
    with serve(run, Address(), DEFAULT, directory) as server:
        assert said(tmp_path / "there.jsonl", server.url, directory, env=run) == here
        status, body = post(server.url, rows(row, {**row, "history": [idle] * 2}))
    assert [len(played) for *_, played in here] == [turns] * 3
    assert [truncated for truncated, *_ in here] == [True] * 3
    reply, last = json.loads(body)["predictions"]
    acts = run == "calls"
    wanted = {"text": CALL if acts else "hm", "action": ACTION if acts else "", "parsed": acts, "over": ""}
    assert (status, {name: reply[name] for name in wanted}, reply["fault"]) == (
        200,
        wanted,
        "" if acts else "no action",
    )
    over = "the episode is over: 3 unusable answers in a row reach context.invalid_limit=3"
    assert last["over"] == ("" if acts else over)
