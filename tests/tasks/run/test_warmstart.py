"""Warm starts: one for each configuration, made once, kept whole."""

import os

import pytest
from support.disk import no_room
from support.listener import Listener
from support.policies import qwen
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.lineage.atomic_files import hash_beside
from coevo.lineage.fsck.places import spoilt_warmstarts
from coevo.lineage.workspace import Workspace
from coevo.models.policy.policy import save
from coevo.tasks.publish.reporter import Silent, reporting_to
from coevo.tasks.run.warmstart import adopt, identity, start_metrics, warm_start
from coevo.utilities.errors import CoevoError
from coevo.utilities.system_faults import fault

SMALL = ["warmstart.steps=2", "warmstart.probe_every=2", "warmstart.probe_tasks=8", "warmstart.episodes=2"]


def config(*overrides):
    return load_recipe("homerules-coevo-rl", [*SMALL, *overrides])


def test_identity_follows_all_that_decides_the_policy_and_nothing_else():
    same = {identity(config(o), environment()) for o in ("seed=0", "iterations=3", "bank.every=2", "update.loss.kl=k1")}
    other = {
        identity(config(o), environment()) for o in ("seed=1", "policy.layers=1", "warmstart.lr=0.001", "env.level=2")
    }
    assert len(same) == 1
    assert len(other) == 4
    assert not same & other


def test_another_model_at_the_same_path_is_another_start(tmp_path, monkeypatch):
    save(qwen(), tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    pretrained = ["policy={type: pretrained, path: mine}", "warmstart=null", "context.style=chat"]
    config = load_recipe("homerules-coevo-rl", pretrained)
    assert config.policy.path == str(tmp_path / "mine")  # a resume finds it from anywhere
    first = identity(config, environment())
    assert identity(config, environment()) == first
    os.utime(tmp_path / "mine" / "model.safetensors", ns=(1, 1))
    assert identity(config, environment()) != first


def test_it_is_made_once_and_a_missed_probe_is_a_warning(tmp_path):
    listener = Listener()
    place = Workspace(tmp_path)
    directory = warm_start(config(), environment(), place.warmstarts, listener)
    made = (directory / "model.safetensors").stat().st_mtime_ns
    assert warm_start(config(), environment(), place.warmstarts, listener) == directory
    assert (directory / "model.safetensors").stat().st_mtime_ns == made
    assert start_metrics(directory)["policy/warmstart/passed"] == 0.0
    (warning,) = listener.warnings
    assert "against warmstart.read=0.75" in warning
    assert spoilt_warmstarts(place) == []
    (directory / "model.safetensors").write_bytes(b"half")
    assert spoilt_warmstarts(place) == [directory]


PRETRAINED = ("policy={type: pretrained, path: mine}", "warmstart=null", "context.style=chat")
ADAPTERS = (*PRETRAINED, "policy.lora={r: 2, alpha: 4}")
ENDPOINT = ("policy={type: endpoint, url: 'http://127.0.0.1:9/v1', model: m}", "warmstart=null", "context.style=chat")


@pytest.mark.parametrize(
    ("settings", "cloned"),
    [
        (SMALL, True),
        (("warmstart.steps=0",), False),
        (("warmstart=null",), False),
        (PRETRAINED, False),
        (ADAPTERS, False),
        ((*ENDPOINT, "update=null"), False),
    ],
    ids=["scratch", "no steps", "none", "pretrained", "adapters", "endpoint"],
)
def test_a_warm_start_is_a_stage_where_there_is_one(tmp_path, monkeypatch, settings, cloned):
    save(qwen(), tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    made, heard = load_recipe("homerules-coevo-rl", settings), [Listener(), Listener()]
    for listener in heard:  # the second finds it in the cache
        with reporting_to(listener):
            directory = warm_start(made, environment(), tmp_path / "cache", listener)
    assert all(listener.notes[0] == "initial policy" for listener in heard)
    assert [any("warm start" in note for note in listener.notes) for listener in heard] == [cloned, False]
    assert bool(start_metrics(directory)) == cloned


@pytest.mark.parametrize(
    "drawn", [(), ("warmstart.predictions=random",), ("warmstart.lessons=0.5", "warmstart.asides=0.5")]
)
def test_reflections_are_asked_for_whatever_the_teacher_draws(tmp_path, drawn):
    listener = Listener()
    made = load_recipe("homerules-retroagent-policy", [*SMALL, *drawn])
    directory = warm_start(made, environment(), tmp_path, listener)
    assert start_metrics(directory)["policy/warmstart/reflections_as_taught"] == 0.0
    assert "and gives 0.00 of its reflections as taught, against warmstart.write=0.9" in listener.warnings[0]


def test_a_damaged_one_is_named_and_made_again(tmp_path):
    listener, place = Listener(), Workspace(tmp_path)
    directory = warm_start(config(), environment(), place.warmstarts, Silent())
    policy = directory / "model.safetensors"
    sound = policy.read_bytes()
    for harm in (lambda: policy.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1])), hash_beside(directory).unlink):
        harm()
        assert spoilt_warmstarts(place) == [directory]
        warm_start(config(), environment(), place.warmstarts, listener)
        assert policy.read_bytes() == sound
        assert spoilt_warmstarts(place) == []
    assert [text for text in listener.warnings if "is not what" in text] == [
        f"{directory} is not what {directory.name}.sha256 says was made: it is made again"
    ] * 2


def test_one_from_elsewhere_is_adopted_whole(tmp_path):
    place, made = Workspace(tmp_path), tmp_path / "made"
    made.mkdir()
    (made / "model.safetensors").write_bytes(b"weights")
    kept = place.warmstarts / "0123"
    for _ in range(2):
        adopt(made, kept, Silent())
        assert (kept / "model.safetensors").read_bytes() == b"weights"
        assert spoilt_warmstarts(place) == []
        (kept / "model.safetensors").write_bytes(b"half")


def test_an_unfinished_one_is_made_again(tmp_path):
    directory = tmp_path / identity(config(), environment())
    directory.with_suffix(".part").mkdir()
    (directory.with_suffix(".part") / "half").touch()
    assert warm_start(config(), environment(), tmp_path, Silent()) == directory
    assert not (directory / "half").exists()


def test_one_that_a_full_disk_stopped_is_made_again(tmp_path):
    with no_room(), pytest.raises(OSError, match="File too large") as caught:
        warm_start(config(), environment(), tmp_path, Silent())
    assert fault(caught.value).startswith("File too large: make room")
    assert not (tmp_path / identity(config(), environment())).exists()
    assert (warm_start(config(), environment(), tmp_path, Silent()) / "model.safetensors").is_file()


def test_where_there_is_nothing_to_read_success_alone_decides(tmp_path):
    settings = [*SMALL, "env.distractors=0", "env.steps=4", "evaluation.tasks=8"]
    with_goal = load_recipe("babyai-grpo", [*settings, "warmstart.read=0.0"])
    without = load_recipe("babyai-grpo", [*settings, "warmstart.read=1.0"])
    listener = Listener()
    for config, passed in ((with_goal, 1.0), (without, 0.0)):
        report = start_metrics(warm_start(config, make(config.env), tmp_path, listener))
        assert (report["policy/warmstart/passed"], report["policy/warmstart/success_false_lessons"]) == (passed, 0.0)
    (warning,) = listener.warnings
    assert "warmstart.read=1.0" in warning


@pytest.mark.full
def test_where_vllm_generates_the_policy_is_built_in_a_process_of_its_own_and_equal(tmp_path, monkeypatch):
    here = warm_start(config("warmstart=null"), environment(), tmp_path / "here", Silent())
    monkeypatch.setattr("coevo.models.policy.policy.build", None)
    there = warm_start(
        config("warmstart=null", "rollout.engine.type=vllm"), environment(), tmp_path / "there", Silent()
    )
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {
        path.name: path.read_bytes() for path in here.iterdir()
    }


@pytest.mark.full
def test_a_policy_that_cannot_be_built_there_is_one_line(tmp_path):
    missing = config(
        "warmstart=null", "rollout.engine.type=vllm", f"policy={{type: pretrained, path: {tmp_path}/none}}"
    )
    with pytest.raises(CoevoError, match=r"^policy.path = '.*none' cannot be read") as caught:
        warm_start(missing, environment(), tmp_path / "cache", Silent())
    assert "\n" not in str(caught.value)
