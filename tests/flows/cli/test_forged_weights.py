"""A pulled run whose policy is nonsense: the commands that would play with it refuse it in one line.

One run of each kind is pushed and pulled; a revision of it is sound, and each of the others is forged in another way.
"""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from support import runs
from support.packages import untrained
from support.sessions import committed, opened
from support.worker import environment

from coevo.configs.load.load import load_recipe
from coevo.flows.cli.app import main
from coevo.flows.servers.daemon import down
from coevo.models.policy.context import CONTEXT_WORDS
from coevo.models.policy.policy import PEFT_CONFIG, PEFT_WEIGHTS, WEIGHTS, build, save
from coevo.records.draws import key

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]

SMALL = ["warmstart=null", "rollout.tasks=2", "rollout.group_size=2", "evaluation.tasks=2"]
LORA = "policy={{type: pretrained, path: '{}', lora: {{r: 4, alpha: 8}}}}"


def tensors(change, file=WEIGHTS):
    """Change the tensors of a policy's file."""

    def forge(policy):
        found = load_file(policy / file)
        change(found)
        save_file(found, policy / file)

    return forge


def every(change, file=WEIGHTS):
    return tensors(lambda found: found.update({name: change(value) for name, value in found.items()}), file)


def first(found):
    return found[min(found)].view(-1)[:1]


def setting(file, **values):
    """Change the settings beside the weights."""
    return lambda policy: (policy / file).write_text(json.dumps(json.loads((policy / file).read_text()) | values))


def cut(policy):
    content = (policy / WEIGHTS).read_bytes()
    (policy / WEIGHTS).write_bytes(content[: len(content) // 2])


FORGED = {
    "whole": {
        "one infinite value": (tensors(lambda found: first(found).fill_(torch.inf)), "is not finite"),
        "other layers": (setting("config.json", num_hidden_layers=3), "num_hidden_layers is '3' instead of 2"),
        "another architecture": (
            setting("config.json", model_type="llama"),
            "model_type is 'llama' instead of 'qwen3'",
        ),
        "half precision": (setting("config.json", dtype="float16"), "dtype is 'float16' instead of 'float32'"),
        "weights in half precision": (every(torch.Tensor.half), "has numbers of type F16 instead of F32"),
        "integers": (every(torch.Tensor.int), "has numbers of type I32 instead of F32"),
        "a missing tensor": (tensors(lambda found: found.pop(min(found))), "is missing"),
        "a cut file": (cut, "is damaged or incomplete"),
        "no file": (lambda policy: (policy / WEIGHTS).unlink(), "no file named model.safetensors"),
        "NaN": (every(lambda value: value * torch.nan), "is not finite"),
    },
    "adapters": {
        "another scale": (setting(PEFT_CONFIG, lora_alpha=0), "other adapters than policy.lora: lora_alpha is '0'"),
        "another rank": (setting(PEFT_CONFIG, r=8), "other adapters than policy.lora: r is '8'"),
        "a missing adapter": (tensors(lambda found: found.pop(min(found)), PEFT_WEIGHTS), "is missing"),
        "NaN": (every(lambda value: value * torch.nan, PEFT_WEIGHTS), "is not finite"),
    },
}
"""Ways to forge a policy, by its kind, and the words of the refusal; the last revision has the last one."""
CASES = [(kind, name) for kind, forged in FORGED.items() for name in forged]


def adapted(directory, base):
    """A policy of untrained adapters; its configuration."""
    config = load_recipe("homerules-coevo-rl", [*SMALL, LORA.format(base)])
    save(build(config.policy, (*environment().vocabulary, *CONTEXT_WORDS), key(1)), directory)
    return config


@pytest.fixture(scope="module")
def pulled(tmp_path_factory):
    """By kind of policy: the workspace that its run was pulled into. Revision 1 is sound."""
    root = tmp_path_factory.mktemp("forged")
    configs = {"whole": load_recipe("homerules-coevo-rl", SMALL)}
    base = untrained(root / "whole" / "policy")
    configs["adapters"] = adapted(root / "adapters" / "policy", base)
    for kind, config in configs.items():
        source, remote, away = (root / kind / name for name in ("source", "remote", "away"))
        with opened(source, config) as session:
            for forge in (lambda _: None, *(forge for forge, _ in FORGED[kind].values())):
                forge(shutil.copytree(root / kind / "policy", session.stores.paths.staging / "policy"))
                session.iteration += 1
                committed(session)
        for command, workspace in (("push", source), ("pull", away)):
            with pytest.raises(SystemExit, match="0"):
                main([command, str(remote), "run", "--workspace", str(workspace)])
    return {kind: root / kind / "away" for kind in configs}


def asked(coevo, pulled, kind, command, revision, *options):
    run = "run" if revision is None else f"run@{revision}"
    trust = ("--trust", "policy.path") if kind == "adapters" else ()
    return coevo(command, run, *options, *trust, "--workspace", pulled[kind])


@pytest.mark.parametrize("kind", FORGED)
def test_a_sound_policy_is_evaluated(pulled, coevo, kind):
    assert asked(coevo, pulled, kind, "evaluate", 1).code == 0


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_forged_weights_are_not_evaluated(pulled, coevo, kind, name):
    done = asked(coevo, pulled, kind, "evaluate", 2 + list(FORGED[kind]).index(name))
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert FORGED[kind][name][1] in done.err


@pytest.mark.parametrize("kind", FORGED)
@pytest.mark.parametrize("line", ["evaluate --samples 2", "serve", "package"])
def test_forged_weights_are_neither_sampled_nor_served(pulled, coevo, kind, line):
    command, *options = line.split()
    done = asked(coevo, pulled, kind, command, None, *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "is not finite" in done.err


def test_forged_weights_are_not_trained(pulled):
    workspace = pulled["whole"]
    done = runs.coevo("resume", "run", "--accept-change", "--iterations", "50", workspace=workspace)
    down(workspace)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "is not finite" in done.stderr
