"""``coevo run --dry-run`` says what a run would take and writes nothing; a start that cannot fit is refused."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.chat import chat
from support.policies import qwen
from support.row_tables import ROWS, written
from support.tools import parrot
from transformers import Qwen3Config, Qwen3ForCausalLM

from coevo.configs.bank.admission_config import notice
from coevo.configs.load.load import load_recipe
from coevo.configs.load.shipped_files import names
from coevo.flows import api
from coevo.models.policy.language_model import Policy
from coevo.models.policy.layout import Deviation
from coevo.models.policy.policy import save
from coevo.utilities.errors import CoevoError

SMALL, LARGE = "homerules-coevo-rl", "homerules-coevo-rl-qwen3-8b"
SHAPE = (
    "{architecture: qwen3, vocabulary: 2000, hidden_size: 32, intermediate_size: 48, layers: 1, heads: 2, "
    "kv_heads: 1, head_dim: 16, max_positions: 8192, tied: true}"
)
"""Sizes of a small policy, for estimates without its files."""


def tree(directory):
    return sorted(str(path) for path in Path(directory).rglob("*"))


def test_a_dry_run_reports_and_writes_nothing(coevo, tmp_path):
    done = coevo("run", SMALL, "--dry-run", "--workspace", tmp_path / "none")
    assert (done.code, done.err) == (0, "")
    assert not (tmp_path / "none").exists()
    lines = done.out.splitlines()
    for head in ("policy", "memory", "time", "observe", "act", "feedback"):
        assert any(line.startswith(head) for line in lines), head
    assert re.search(
        r"^prompts   \d+ to \d+ tokens in \d+ tasks, answers up to 12, context window \d+$", done.out, re.M
    )
    assert "thinking  none; an answer has up to 12 tokens" in lines
    assert re.search(r"^disk      \d+\.\d of \d+\.\d GiB free, for all policies of the run$", done.out, re.M)
    assert lines[-1] == "ready to start"


WRITER_MODEL = {"type": "endpoint", "url": "http://a/v1", "model": "m"}


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("COEVO_TEST_NO_KEY", "key=COEVO_TEST_NO_KEY: the environment has no such variable; set it to the API key"),
        ("sk_0123456789abcdef", "key: the environment has no variable of this name; name the environment variable"),
    ],
)
def test_an_writer_model_without_a_key_is_refused_before_anything_is_written(coevo, copied, tmp_path, key, said):
    directory = tmp_path / "none"
    writer = f"bank.writer={{type: model-contrast, model: {json.dumps(WRITER_MODEL | {'key': key})}}}"
    dry = coevo("run", SMALL, writer, "--dry-run", "--workspace", directory)
    elsewhere = coevo("run", SMALL, writer, "--dry-run", "--on", "1xh100", "--workspace", directory)
    started = coevo("run", SMALL, writer, "--workspace", directory)
    branched = coevo("branch", "first@2", "mine", writer)
    with pytest.raises(CoevoError, match=said):
        api.run(
            SMALL,
            {"bank.writer": {"type": "model-contrast", "model": WRITER_MODEL | {"key": key}}},
            workspace=directory,
        )
    assert (dry.code, dry.out.splitlines()[-1]) == (1, "not ready: solve the problems above first")
    assert said in dry.out and (elsewhere.code, said in elsewhere.out) == (0, False)
    assert [(each.code, said in each.err) for each in (started, branched)] == [(2, True)] * 2
    assert not directory.exists() and not (copied / "runs/mine").exists()
    assert key.isupper() or key not in dry.out + started.err + branched.err


UNPROVEN = (
    "bank.admission.type={} admits lessons without evidence: nothing is replayed; to have replay judge them, set "
)
NOTICES = {
    "homerules-retroagent": (UNPROVEN.format("append"), []),
    "homerules-slea-rl": (UNPROVEN.format("score"), []),
    "homerules-jerp": (UNPROVEN.format("edits"), []),
    SMALL: ("bank.admission.type=replay admits lessons without evidence: delta=-0.5", ["bank.admission.delta=-0.5"]),
}


@pytest.mark.parametrize("recipe", NOTICES)
def test_a_recipe_that_admits_lessons_without_evidence_reports_it_first(coevo, recipe):
    says, settings = NOTICES[recipe]
    shown = coevo("run", recipe, *settings, "--dry-run").out.splitlines()
    assert shown[1].startswith(f"notice    {says}")
    assert json.loads(coevo("run", recipe, *settings, "--dry-run", "--json").out)["notice"].startswith(says)


def test_a_recipe_that_replays_or_has_no_bank_has_nothing_to_report(coevo):
    for settings in ([], ["bank.admission.confidence=0.95"], ["bank=null"]):
        assert json.loads(coevo("run", SMALL, *settings, "--dry-run", "--json").out)["notice"] is None


def test_every_shipped_recipe_reports_it_by_its_configuration_alone():
    for name in names("recipes"):
        bank = load_recipe(name).bank
        if bank is not None:
            assert (notice(bank.admission) is None) == (bank.admission.type == "replay"), name


def test_a_run_reports_it_before_anything_starts(coevo, tmp_path, monkeypatch):
    def stop(workspace):
        raise CoevoError("nothing is started here")

    monkeypatch.setattr("coevo.flows.start_run.use_prefect", stop)
    first, second = coevo("run", "homerules-slea-rl", "--name", "mine", "--workspace", tmp_path).out.splitlines()
    assert first.startswith("run mine in ")
    assert second.startswith(UNPROVEN.format("score"))


def test_json_has_it_all(coevo, small_workspace):
    before = tree(small_workspace)
    said = json.loads(coevo("run", SMALL, "seed=3", "--dry-run", "--json").out)
    assert (said["recipe"], said["ready"], said["problems"]) == (SMALL, True, [])
    assert said["policy"]["parameters"] == said["policy"]["trained"] == 194_432
    assert said["prompts"]["tasks"] == 8 + 4 * 192
    assert len(said["turns"]) == 2
    assert all(directory["fits"] and directory["gib"] > 0 for directory in said["memory"])
    assert tree(small_workspace) == before


def test_a_recipe_at_full_scale_is_rehearsed_on_another_machine(coevo):
    said = json.loads(coevo("run", LARGE, "--dry-run", "--on", "4xa100-80", "--json").out)
    assert said["ready"]
    assert said["machine"] == "4 x A100-80 of 79 GiB, 800 GiB of memory"
    assert said["policy"]["parameters"] == 8_190_735_360
    assert said["prompts"]["guessed"]


def test_a_folder_or_file_that_is_no_model_is_called_what_it_is(coevo, tmp_path):
    (tmp_path / "file").write_text("")
    for path, said in ((tmp_path, "has no config.json"), (tmp_path / "file", "is a file")):
        done = coevo("run", SMALL, f"policy={{type: pretrained, path: {path}, shape: {SHAPE}}}", "warmstart=null",
                     "context.style=chat", "--dry-run")  # fmt: skip
        assert (done.code, f"'{path}' {said}: name a folder with a causal LM" in done.out + done.err) == (1, True)


@pytest.mark.parametrize(("path", "load"), [("/nope", ""), ("Qwen/Qwen3-nope", "`hf download Qwen/Qwen3-nope`, or ")])
def test_a_model_that_is_not_on_this_machine_is_a_problem_here_alone(coevo, path, load):
    recipe = [SMALL, f"policy={{type: pretrained, path: {path}, shape: {SHAPE}}}", "warmstart=null"]
    done = coevo("run", *recipe, "context.style=chat", "--dry-run")
    problem, last = done.out.splitlines()[-2:]
    assert problem == (
        f"problem   policy.path = {path!r} cannot be read, it is not on this machine: {load}name a folder with a "
        "causal LM"
    )
    assert (done.code, last) == (1, "not ready: solve the problems above first")
    elsewhere = coevo("run", *recipe, "context.style=chat", "--dry-run", "--on", "1xh100")
    assert (elsewhere.code, elsewhere.out.splitlines()[-1]) == (0, "ready to start")


def test_what_cannot_start_here_ends_with_one_and_the_reason(coevo, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    done = coevo("run", LARGE, "--dry-run")
    assert done.code == 1
    assert "there are none here" in done.out
    assert done.out.splitlines()[-1] == "not ready: solve the problems above first"


def test_a_start_that_cannot_fit_is_one_line_and_leaves_nothing(refused, tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    # On a larger host, adapters could be trained on its CPU.
    monkeypatch.setattr("psutil.virtual_memory", lambda: SimpleNamespace(total=8 * 2**30))
    assert "take a machine such as 4xa100-80" in refused("run", LARGE, "--workspace", tmp_path / "none")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"prompt": " "}, "write the task into the column of env.prompt"),
        ({"topic": None}, "missing='topic'"),
        ({"prompt": "what is 7 plus 1"}, "split"),
    ],
)
def test_a_table_that_the_gate_of_a_run_would_stop_is_a_problem(coevo, tmp_path, more, said):
    rows = [{**row, "split": "test" if number % 3 else "train"} for number, row in enumerate(ROWS)]
    rows += [{**rows[8], "prompt": "another", "split": "train", **more}] if more else []
    settings = ["warmstart=null", "env.reward=support.row_functions:exact", "env.scope=null", "env.answer=null"]
    settings += ["evaluation.panels=[]", "evaluation.final_panels=[]", "evaluation.tasks=4"]
    table = f"env.path={written(tmp_path, rows)}"
    done = coevo("run", "rows-grpo", table, *settings, "--dry-run", "--workspace", tmp_path / "none")
    problems = [line for line in done.out.splitlines() if line.startswith("problem   gate table: ")]
    assert (done.code, len(problems)) == (int(bool(more)), len(bool(more) * [1]))
    assert all(said in each for each in problems)
    assert not (tmp_path / "none").exists()


def test_the_option_of_a_dry_run_needs_one(refused):
    assert "add --dry-run" in refused("run", SMALL, "--on", "h200")


@pytest.mark.parametrize("option", [("--dry-run",), ("--workspace", "none")])
def test_a_run_that_its_environment_cannot_play_is_one_line_and_leaves_nothing(refused, tmp_path, monkeypatch, option):
    monkeypatch.chdir(tmp_path)
    assert "'nope' is no panel of homerules" in refused("run", SMALL, "evaluation.panels=[nope]", *option)
    monkeypatch.setattr("coevo.envs.homerules.homerules.HomeRules.repeats", False)
    assert "homerules does not repeat: set bank.admission.type=append" in refused("run", SMALL, *option)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("option", [("--dry-run",), ("--workspace", "none")])
@pytest.mark.parametrize(("part", "name"), [("demonstrations", "demonstrations"), ("probe", "reading probe")])
def test_an_environment_that_cannot_teach_a_policy_from_scratch_says_what_would(
    refused, tmp_path, monkeypatch, option, part, name
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delattr(f"coevo.envs.homerules.homerules.HomeRules.{part}")
    assert refused("run", SMALL, *option) == (
        f"coevo: homerules has no {name}: write `{part}` (docs/add-an-environment.md), or take a policy that can read "
        "(policy.type=pretrained, warmstart=null)\n"
    )
    assert not (tmp_path / "none").exists()


def test_a_tokenizer_without_a_chat_template_is_one_line_before_anything_is_started(refused, tmp_path):
    given = qwen()
    given.tokenizer.chat_template = None
    save(given, tmp_path / "base-model")
    policy = ("policy.type=pretrained", f"policy.path={tmp_path / 'base-model'}", "policy.lora={r: 4, alpha: 8}")
    for options in (("--dry-run",), ("--workspace", tmp_path / "none")):
        result = refused("run", "homerules-coevo-rl", *options, *policy)
        assert f"'{tmp_path / 'base-model'}': its tokenizer has no chat template; name an instruction" in result
    assert not (tmp_path / "none").exists()


QWEN3_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}{# <think> #}"
)


THINKING_TEMPLATE = QWEN3_TEMPLATE.replace(
    "assistant\n{% endif %}",
    "assistant\n{% if enable_thinking %}<think>\n{% else %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
)


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory):
    """Options of a small chat policy with random weights, whose template knows thinking and whose card samples."""
    folder, tokenizer = tmp_path_factory.mktemp("model"), chat()
    tokenizer.chat_template = QWEN3_TEMPLATE
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=48, num_hidden_layers=1, head_dim=16,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=8192, tie_word_embeddings=True,
    )  # fmt: skip
    save(Policy(Qwen3ForCausalLM(config), tokenizer), folder)
    card = json.loads((folder / "generation_config.json").read_text())
    (folder / "generation_config.json").write_text(json.dumps(card | {"top_k": 20, "repetition_penalty": 1.1}))
    return ["policy.type=pretrained", f"policy.path={folder}", "context.style=chat", "warmstart=null"]


def test_a_chat_run_shows_a_whole_prompt_with_its_guide_and_what_it_does_not_follow(coevo, chat_model):
    done = coevo("run", SMALL, *chat_model, "--dry-run")
    assert "<|im_start|>system" in done.out
    assert "  | go PLACE: go to a closed place and look into it. Places: drawer, cabinet, safe, chest." in done.out
    follow = "set rollout.sampling.top_k=20 update.loss.importance_cap=2.0; no setting follows repetition_penalty"
    assert f"sets top_k=20, repetition_penalty=1.1; the run does not follow it: {follow}" in done.out
    assert "thinking  left to the model" in done.out
    assert (done.code, done.out.splitlines()[-1]) == (0, "ready to start")


@pytest.mark.parametrize(("template", "said"), [("{enable_thinking: true}", "on"), ("{enable_thinking: false}", "off")])
def test_thinking_that_the_template_is_asked_for_is_shown(coevo, chat_model, tmp_path, template, said):
    folder = tmp_path / "model"
    shutil.copytree(chat_model[1].partition("=")[2], folder)
    (folder / "chat_template.jinja").write_text(THINKING_TEMPLATE)
    options = [chat_model[0], f"policy.path={folder}", *chat_model[2:], f"context.template={template}"]
    shown = coevo("run", SMALL, *options, "--dry-run", "--json").out
    assert json.loads(shown)["prompts"]["thinking"] == said


def test_a_chat_run_in_an_environment_without_a_guide_reports_it(coevo, chat_model, monkeypatch):
    monkeypatch.delattr("coevo.envs.homerules.homerules.HomeRules.guide")
    done = coevo("run", SMALL, *chat_model, "--dry-run")
    assert "homerules has no guide: prompts do not say which actions exist" in done.out
    assert "problem   the prompt does not name 'take', which changed a state" in done.out
    assert done.code == 1


def test_what_the_run_does_not_follow_is_reported_at_its_start(coevo, chat_model, tmp_path, monkeypatch):
    def stop(workspace):
        raise CoevoError("nothing is started here")

    monkeypatch.setattr("coevo.flows.start_run.use_prefect", stop)
    lines = coevo("run", SMALL, *chat_model, "--workspace", tmp_path).out
    assert "sets top_k=20, repetition_penalty=1.1; the run does not follow it" in lines


def test_a_conversation_names_how_its_prompts_differ_from_the_template(coevo, tmp_path):
    save(parrot("hm"), tmp_path / "policy")
    policy = ["policy.type=pretrained", f"policy.path={tmp_path / 'policy'}", "warmstart=null"]
    answers = "rollout.sampling.max_new_tokens=99"
    shown, most = {}, {}
    for style in ("chat", "conversation"):
        lines = coevo("run", SMALL, *policy, answers, f"context.style={style}", "--dry-run").out.splitlines()
        shown[style] = [line for line in lines if line.startswith("template")]
        most[style] = [line for line in lines if line.startswith("prompts   up to ")]
    named = (Deviation.TOKENS, Deviation.END, Deviation.OPENING, Deviation.THOUGHTS)
    assert shown == {"chat": [], "conversation": [f"template  {each}" for each in named]}
    assert most["chat"] == []
    assert re.fullmatch(r"prompts   up to \d+ tokens if all answers in them have 99", *most["conversation"])
