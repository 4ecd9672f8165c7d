"""Steps that other machines compute: they are in no time, and a notice names them."""

import json
from dataclasses import replace

import pytest
from support.policies import WORDS, qwen

from coevo.configs.load.load import load_recipe
from coevo.envs.registry import make
from coevo.flows.console.run_overview import dry_run_report, show_dry_run
from coevo.models.capacity.devices import GIB, Device, Machine, named
from coevo.models.capacity.model_shape import shape_of
from coevo.models.policy.policy import save
from coevo.tasks.preflight.duration import durations, remote, untimed_steps
from coevo.tasks.preflight.forecast import forecast
from coevo.tasks.preflight.memory import Lengths
from coevo.tasks.preflight.rehearse import glance

SMALL = "homerules-coevo-rl"
HERE = Machine((), Device("cpu", 8 * GIB, 1e11, 2e10), 100 * GIB)
LENGTHS = Lengths(shortest=50, longest=150, answer=10, last=120)
SERVED = ("rollout.engine={type: vllm, urls: ['http://a:8000', 'http://b:8000'], sync: gloo, dtype: bfloat16}",)
PLAYED = ["rollout", "judging", "evaluation", "sync"]
SPEED = "may be of any speed: `--on MACHINE` estimates with a machine such as these"


ON_CPUS = ("placement={type: ray, pools: {trainer: {}}}",)
ON_GPUS = ("update.deepspeed.processes=8", "placement={type: ray, pools: {trainer: {gpus: 1}}}")


def run(config, machine=HERE):
    shape = replace(shape_of(config.policy, len(WORDS)), parameters=10**6, trainable=10**6, bytes=4)
    return config, machine, shape, LENGTHS, 4.0


def test_servers_elsewhere_and_an_update_elsewhere_are_not_timed():
    whole = durations(*run(load_recipe(SMALL)))
    served = durations(*run(load_recipe(SMALL, SERVED)))
    # A disk writes 4 bytes of weights and 8 of moments per parameter, at 5e8 bytes per second.
    assert served == {"update": whole["update"], "save": 12e6 / 5e8}
    both = load_recipe(SMALL, [*SERVED, *ON_CPUS])
    assert durations(*run(both)) == {"save": 12e6 / 5e8}
    assert remote(*run(both)) == [*PLAYED[:3], "update", "sync"]
    assert remote(*run(load_recipe(SMALL))) == []


def test_one_notice_for_each_setting_names_its_steps():
    config = load_recipe(SMALL, [*SERVED, *ON_CPUS])
    first, second = untimed_steps(config, HERE, remote(*run(config)))
    urls = "rollout.engine.urls=[http://a:8000,http://b:8000]"
    assert first == f"rollout, judging, evaluation and sync are not in the time, since {urls} {SPEED}"
    assert second == f"update is not in the time, since the nodes of placement.pools.trainer {SPEED}"
    alone = load_recipe("homerules-grpo", [*ON_CPUS])
    (said,) = untimed_steps(alone, HERE, remote(*run(alone)))
    assert said == second


def test_a_named_machine_stands_for_the_others():
    config = load_recipe(SMALL, [*SERVED, *ON_GPUS, "update.deepspeed.device=cuda"])
    machine = named("1xh100")
    found = durations(*run(config, machine))
    assert (remote(*run(config, machine)), [*untimed_steps(config, machine, found)]) == ([], [])
    # 989e12 flops at 0.3 of the rate; a turn of half the rows on each server: 100 tokens of prompts, and 10 of answers,
    # for each of which the weights, 4e6 bytes, are read at 0.6 of 3.35e12 bytes per second at least.
    rows = config.rollout.tasks * config.rollout.group_size
    work, read = 2e6 * rows / 2 / (0.3 * 989e12), 4e6 / (0.6 * 3.35e12)
    assert found["rollout"] == pytest.approx(4 * (100 * work + 10 * max(work, read)))
    here = replace(machine, assumed=False)
    assert remote(*run(config, here)) == [*PLAYED[:3], "update", "sync"]


@pytest.fixture
def model(tmp_path):
    """Directory of a model."""
    save(qwen(1), tmp_path / "model")
    return tmp_path / "model"


def written(writer_model, *more):
    return load_recipe(SMALL, [f"bank.writer={{type: model-contrast, model: {{{writer_model}}}}}", *more])


def test_a_policy_that_writes_on_servers_elsewhere_is_not_timed(model):
    own = ("context.style=chat", "warmstart=null", f"policy={{type: pretrained, path: {model}}}")
    config = written("type: policy", *SERVED, *own)
    assert remote(*run(config)) == ["rollout", "judging", "writing", "evaluation", "sync"]
    (said,) = untimed_steps(config, HERE, remote(*run(config)))
    assert said.startswith("rollout, judging, writing, evaluation and sync are not in the time, since rollout.engine")


def test_a_frozen_model_that_writes_on_servers_elsewhere_is_not_timed(model):
    config = written(f"type: frozen, path: {model}, engine: {{type: vllm, urls: ['http://c:1']}}")
    assert remote(*run(config)) == ["writing"]
    (said,) = untimed_steps(config, HERE, remote(*run(config)))
    assert said == f"writing is not in the time, since bank.writer.model.engine.urls=[http://c:1] {SPEED}"
    here = written(f"type: frozen, path: {model}", *SERVED)
    assert remote(*run(here)) == PLAYED
    assert durations(*run(here))["writing"] > 0


def test_the_total_does_not_claim_to_be_the_whole_time(capsys):
    config = load_recipe(SMALL, [*SERVED, *ON_CPUS])
    env = make(config.env)
    found = forecast(config, glance(config, env), HERE)
    assert found.untimed == ("rollout", "judging", "evaluation", "update", "sync")
    said = dry_run_report(config, env, found)
    show_dry_run(said)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("time")]
    left = " without rollout, judging, evaluation, update, sync"
    assert lines[0].startswith("time      about ") and f" s per iteration{left}: save " in lines[0]
    assert f" h for {config.iterations} iterations{left}, at " in lines[1]
    assert json.loads(json.dumps(said))["untimed"] == list(found.untimed)
    show_dry_run(said | {"seconds": {}})
    assert f"time      not known{left}" in capsys.readouterr().out.splitlines()


def test_an_endpoint_that_writes_is_left_out_of_the_total():
    writer_model = "model: {type: endpoint, url: 'http://localhost:8000/v1', model: big}"
    config = load_recipe(SMALL, [f"bank.writer={{type: model-contrast, {writer_model}}}"])
    found = forecast(config, glance(config, make(config.env)), HERE)
    assert found.untimed == ("writing",)
