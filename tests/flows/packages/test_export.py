"""Export of a revision: what other tools load, and what they read."""

import json
import shutil

import pytest
import torch
from markdown_it import MarkdownIt
from peft import AutoPeftModelForCausalLM
from support.chat_model import small_model
from support.packages import untrained
from support.runs import coevo
from support.small_run import build
from transformers import AutoModelForCausalLM, AutoTokenizer

from coevo.configs.policy_config import LoraConfig, PretrainedPolicyConfig
from coevo.flows.evaluation.evaluate_samples import SampleRequest, evaluate_samples
from coevo.flows.evaluation.evaluation_targets import TargetSettings
from coevo.flows.packages.export import export, new_directory
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import read_entries
from coevo.models.policy.policy import build as build_policy
from coevo.models.policy.policy import load, save
from coevo.records.draws import key
from coevo.utilities.errors import CoevoError

PROMPT = torch.arange(5, 45)[None]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    root = tmp_path_factory.mktemp("exported")
    build(root / "workspace", policy=untrained(root / "policy"))
    return Workspace(root / "workspace"), root / "policy"


@pytest.fixture(scope="module")
def exported(workspace, tmp_path_factory):
    """Directory of an exported revision; nothing may change it."""
    directory = tmp_path_factory.mktemp("out") / "household"
    export("first", directory, workspace[0])
    return directory


@torch.inference_mode()
def log_probs(model):
    return model(input_ids=PROMPT).logits.float().log_softmax(-1)


def test_transformers_loads_it_with_the_same_log_probs(workspace, exported):
    policy = load(workspace[1])
    assert torch.equal(log_probs(AutoModelForCausalLM.from_pretrained(exported)), log_probs(policy.model))
    text_ = "house lotus . task heat mug to counter ."
    assert AutoTokenizer.from_pretrained(exported)(text_)["input_ids"] == policy.tokenizer(text_)["input_ids"]


def test_peft_loads_adapters_with_the_same_log_probs(tmp_path):
    base = small_model(tmp_path / "base")
    policy = build_policy(PretrainedPolicyConfig(type="pretrained", path=str(base), lora=LoraConfig(r=2)), (), key(1))
    with torch.no_grad():
        for name, weight in policy.model.named_parameters():
            if "lora_B" in name:
                weight.normal_(generator=torch.Generator().manual_seed(2))
    save(policy, tmp_path / "adapters")
    settings = [f"policy={{type: pretrained, path: {base}, lora: {{r: 2}}}}", "context={style: conversation}"]
    build(tmp_path / "workspace", overrides=settings, policy=tmp_path / "adapters")
    export("first", tmp_path / "out", Workspace(tmp_path / "workspace"))
    found = AutoPeftModelForCausalLM.from_pretrained(tmp_path / "out")
    assert torch.equal(log_probs(found), log_probs(policy.model))
    assert not torch.equal(log_probs(found), log_probs(AutoModelForCausalLM.from_pretrained(base)))
    assert "library_name: peft" in (tmp_path / "out" / "README.md").read_text()
    assert str(tmp_path) not in (tmp_path / "out" / "README.md").read_text()
    assert_plays_alike(Workspace(tmp_path / "workspace"), tmp_path)


def assert_plays_alike(workspace, folder):
    """The exported directory plays as its revision does, adapters included."""
    short = TargetSettings(None, ("rollout.max_turns=2", "rollout.sampling.max_new_tokens=6"))
    for name, target in (("one", "first"), ("two", str(folder / "out"))):
        request = SampleRequest(tasks=2, samples=2, output=folder / f"{name}.jsonl")
        evaluate_samples(target, short, request, workspace)
    assert (folder / "one.jsonl").read_bytes() == (folder / "two.jsonl").read_bytes()


def test_the_bank_is_there_for_coevo_and_for_others(exported):
    found = {entry.strategy for entry in read_entries(exported / "bank.jsonl").rows.values()}
    assert found == {"lotus mug in drawer", "lotus heat with microwave"}
    head, _, body = (exported / "SKILL.md").read_text().removeprefix("---\n").partition("\n---\n")
    assert [line.partition(":")[0] for line in head.splitlines()] == ["name", "description"]
    (section,) = body.split("\n## ")[1:]
    scope, *lines = filter(None, section.splitlines())
    assert (scope, sum(line.startswith("- ") for line in lines)) == ('Scope "lotus"', 2)
    lesson = lines.index("- lotus heat with microwave")
    assert lines[lesson + 1 : lesson + 3] == ["  - When: heat mug", "  - Example: use microwave"]
    assert lines[lesson + 3].startswith("  - Evidence: entry ")
    assert "shown in 4 training episodes, 2 of them solved" in lines[lesson + 3]


def test_markup_in_a_name_is_text_on_the_card(tmp_path):
    build(tmp_path / "workspace", overrides=["recipe=__b__"], policy=untrained(tmp_path / "policy"))
    export("first", tmp_path / "out", Workspace(tmp_path / "workspace"))
    tables = MarkdownIt("commonmark").enable("table").parse((tmp_path / "out" / "README.md").read_text())
    cells = [token.children[0].content for token in tables if token.type == "inline" and len(token.children) == 1]
    assert "__b__" in cells


def test_the_card_names_figures_and_versions_and_no_licence(exported):
    card = (exported / "README.md").read_text()
    for said in ("homerules-coevo-rl", "| seen-houses | 4 | 1.000 |", "| retrieval | tfidf |", "- coevo 0.1.0"):
        assert said in card
    assert "icen" not in card


def test_without_a_bank_there_is_no_file_of_one(tmp_path):
    build(tmp_path / "workspace", overrides=["bank=null"], policy=untrained(tmp_path / "policy"))
    export("first", tmp_path / "out", Workspace(tmp_path / "workspace"))
    assert not {"bank.jsonl", "SKILL.md"} & {path.name for path in (tmp_path / "out").iterdir()}


def test_its_files_are_the_owner_s(workspace, exported, tmp_path):
    export("first", tmp_path / "mine", workspace[0])
    with (tmp_path / "mine" / "model.safetensors").open("r+b") as file:
        file.write(b"changed")
    export("first", tmp_path / "again", workspace[0])
    assert (tmp_path / "again" / "model.safetensors").read_bytes() == (exported / "model.safetensors").read_bytes()


def test_a_killed_export_leaves_no_directory_and_is_repeated(workspace, exported, tmp_path):
    line = ("export", "first", str(tmp_path / "out"))
    killed = coevo(*line, workspace=workspace[0].root, kill="coevo.flows.packages.export:_sync@1")
    assert killed.returncode == -9, killed.stderr
    assert not (tmp_path / "out").exists()
    export("first", tmp_path / "out", workspace[0])
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert contents(tmp_path / "out") == contents(exported)


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_what_is_there_stays(workspace, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("full", "file", "link"):
        with pytest.raises(CoevoError, match="name a new or an empty directory"):
            export("first", tmp_path / name, workspace[0])
    export("first", tmp_path / "empty", workspace[0])
    assert (tmp_path / "full" / "mine").exists()
    assert (tmp_path / "empty" / "model.safetensors").exists()


def test_one_process_writes_at_a_time_and_a_failure_leaves_nothing(tmp_path):
    with new_directory(tmp_path / "out") as made:
        (made / "file").touch()
        with pytest.raises(CoevoError, match="another process writes it"), new_directory(tmp_path / "out"):
            pass
        assert (made / "file").exists()
    assert (tmp_path / "out" / "file").exists()
    with pytest.raises(ZeroDivisionError), new_directory(tmp_path / "other"):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_weights_that_are_nonsense_are_not_exported(workspace, tmp_path):
    shutil.copytree(workspace[1], tmp_path / "policy")
    settings = json.loads((tmp_path / "policy" / "config.json").read_text())
    (tmp_path / "policy" / "config.json").write_text(json.dumps(settings | {"hidden_size": 64}))
    build(tmp_path / "workspace", policy=tmp_path / "policy")
    with pytest.raises(CoevoError, match="another architecture"):
        export("first", tmp_path / "out", Workspace(tmp_path / "workspace"))
    assert not (tmp_path / "out").exists()


def test_a_policy_behind_an_endpoint_has_no_weights_to_export(tmp_path):
    policy = "policy={type: endpoint, url: http://127.0.0.1:9/v1, model: m}"
    chat = "context={style: conversation, memory_length: null, placement: turn}"
    build(tmp_path / "workspace", overrides=[policy, chat, "update=null", "warmstart=null"])
    with pytest.raises(CoevoError, match=r"first@3: policy.type=endpoint has no weights to export, .*bank export"):
        export("first", tmp_path / "out", Workspace(tmp_path / "workspace"))
    assert not (tmp_path / "out").exists()
