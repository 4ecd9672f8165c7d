"""Evaluation with samples and banks: the same episodes whatever the batch, and after any kill."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from support.chat_model import small_model
from support.completions import completions
from support.endpoint_expert import ExpertEndpoint
from support.packages import AskedPlayer, Told, packaged, untrained
from support.runs import coevo
from support.small_run import build
from support.worker import CONFIG

from coevo.configs.load.load import load_recipe
from coevo.flows.evaluation.evaluate_revision import evaluate_revision
from coevo.flows.evaluation.evaluate_samples import SampleRequest, _shown, evaluate_samples
from coevo.flows.evaluation.evaluation_targets import TargetSettings
from coevo.flows.evaluation.panel_evaluation import EvaluationRequest
from coevo.flows.evaluation.sample_results import ResultFile
from coevo.flows.packages.export import export
from coevo.lineage.workspace import Workspace
from coevo.memory.exchange.exchange import write_entries
from coevo.memory.stats import Stats
from coevo.records.draws import key
from coevo.tasks.package.agent import Agent
from coevo.tasks.play.retrieve import Retrieved, index_of
from coevo.utilities.errors import CoevoError

TASKS, BANKS = 5, ("own", "none")
WIDE = ("bank.retrieval.scoped=false",)
"""Every task finds the lessons, whatever its house."""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A run with a bank and an untrained policy, whose every draw is close to others."""
    root = tmp_path_factory.mktemp("sampled")
    build(root / "workspace", policy=untrained(root / "policy"))
    return Workspace(root / "workspace")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("models") / "chat")


def played(workspace, text="first", settings=(), env=None, **request):
    """Result of an evaluation, and the rows of its file if it has one."""
    asked = SampleRequest(**{"tasks": TASKS, "banks": BANKS, **request})
    found = evaluate_samples(text, TargetSettings(env, tuple(settings)), asked, workspace)
    return found, [] if asked.output is None else rows(asked.output)


def rows(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def whole(workspace, tmp_path_factory):
    """File of an evaluation that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "results.jsonl"
    played(workspace, samples=2, output=path)
    return path


@pytest.mark.parametrize("concurrency", [1, 64])
@pytest.mark.parametrize("batch", [1, 16, 128])
def test_batch_and_concurrency_change_no_byte(workspace, whole, tmp_path, batch, concurrency):
    path = tmp_path / "again.jsonl"
    played(workspace, samples=2, output=path, batch=batch, concurrency=concurrency)
    assert path.read_bytes() == whole.read_bytes()
    assert path.with_suffix(".json").read_bytes() == whole.with_suffix(".json").read_bytes()
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["again.json", "again.jsonl"]


def test_a_model_behind_an_api_plays_alike_whatever_the_concurrency(tmp_path):
    found = []
    with completions(ExpertEndpoint()) as (url, asked):
        for concurrency in (1, 16):
            path, place = tmp_path / f"{concurrency}.jsonl", Workspace(tmp_path / "none")
            few = {"tasks": 3, "banks": ("none",), "samples": 2}
            played(place, url, ("policy.model=m",), "homerules", output=path, concurrency=concurrency, **few)
            found.append(path.read_bytes())
        assert len(asked) >= 12
    assert found[0] == found[1]
    assert all(turn["answer"] for row in rows(path) for turn in row["turns"])


FEW = {"tasks": 3, "banks": ("none",), "samples": 2}
CALLS = "coevo.models.endpoint_policy.call_ledger:CallLedger"


def test_paid_answers_are_kept_for_resume_and_a_budget_holds_until_a_higher_one(tmp_path):
    endpoint, place, path = ExpertEndpoint(), Workspace(tmp_path / "none"), tmp_path / "results.jsonl"
    with completions(endpoint) as (url, asked):

        def evaluated(output, *settings, resume=False):
            text = ("policy.model=m", "policy.concurrency=4", *settings)
            return played(place, url, text, "homerules", output=output, resume=resume, **FEW)

        evaluated(tmp_path / "whole.jsonl")
        needed, asked[:], endpoint.served = len(asked), [], []
        for resume in (False, True, True):
            with pytest.raises(CoevoError, match=r"tokens=300 is spent .*: set a higher one; .* with --resume"):
                evaluated(path, "policy.budget.tokens=300", resume=resume)
            assert 0 < len(asked) < needed
        evaluated(path, "policy.budget.tokens=1000000", "policy.price={prompt: 1, answer: 1}", resume=True)
    assert len(set(endpoint.served)) == len(asked) == needed
    assert path.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    found = {each.name for each in tmp_path.iterdir() if each.name.startswith("results")}
    assert found == {"results.json", "results.jsonl"}


def test_a_killed_evaluation_asks_an_endpoint_for_what_is_missing_alone(tmp_path):
    endpoint, path = ExpertEndpoint(), tmp_path / "results.jsonl"
    line = ["--env", "homerules", "--bank", "none", "--tasks", "3", "--samples", "2", "--output", str(path)]
    line += ["policy.model=m", "policy.concurrency=1"]
    with completions(endpoint) as (url, asked):
        killed = coevo("evaluate", url, *line, workspace=tmp_path / "none", kill=f"{CALLS}.settle@6")
        assert killed.returncode == -9, killed.stderr
        before = len(asked)
        with pytest.raises(CoevoError, match="is already there: continue it with --resume"):
            played(Workspace(tmp_path / "none"), url, line[-2:], "homerules", output=path, **FEW)
        played(Workspace(tmp_path / "none"), url, line[-2:], "homerules", output=path, resume=True, **FEW)
    assert before == 6 < len(asked)
    assert len(endpoint.served) - len(set(endpoint.served)) <= 1


@pytest.mark.parametrize("samples", [1, 2])
def test_without_a_file_the_message_says_that_nothing_is_kept(tmp_path, samples):
    with completions(ExpertEndpoint()) as (url, _), pytest.raises(CoevoError, match=r"nothing is kept: .*--output"):
        settings = ("policy.model=m", "policy.budget.tokens=100")
        played(Workspace(tmp_path / "none"), url, settings, "homerules", **{**FEW, "samples": samples})


@pytest.mark.parametrize("field", ["condition", "example", "keywords", "edited"])
def test_another_field_of_an_entry_is_another_bank(workspace, tmp_path, field):
    from coevo.flows.history.revision_reference import reading

    with reading("first@1", workspace) as run:
        entries = run.bank().active()
    bank, path = tmp_path / "bank.jsonl", tmp_path / "results.jsonl"
    write_entries(entries, bank)
    played(workspace, tasks=1, banks=(str(bank),), output=path)
    bank.unlink()
    write_entries([replace(entries[0], **{field: 7 if field == "edited" else "pan"}), *entries[1:]], bank)
    with pytest.raises(CoevoError, match=r"was begun with banks\."):
        played(workspace, tasks=1, banks=(str(bank),), output=path, resume=True)


@pytest.mark.parametrize("retrieval", ["tfidf", "utility", "simutil-ucb", "two-phase", "cluster"])
def test_counters_are_part_of_a_bank_where_its_retrieval_reads_them(retrieval):
    clusters = ["clusters={}"] if retrieval == "cluster" else []
    settings = [f"bank.retrieval={{type: {retrieval}}}", "bank.utility={}", *clusters]
    config = load_recipe("homerules-coevo-rl", settings)

    def digest(bank):
        return _shown(Retrieved(index_of(bank, config), key("shown")), bank).digest

    class Counted(Told):
        def stats(self):
            return {each.id: Stats(each.id, 4, 3) for each in self.active()}

    assert digest(Told()) == digest(Told())
    assert (digest(Told()) == digest(Counted())) == (retrieval == "tfidf")


def test_a_row_has_every_turn_and_stands_in_its_order(whole):
    found, ids = rows(whole), list(dict.fromkeys(row["task"] for row in rows(whole)))
    assert [(row["task"], row["replica"], row["bank"]) for row in found] == [
        (task, replica, bank) for task in ids for replica in range(2) for bank in BANKS
    ]
    assert len(ids) == TASKS
    for row in found:
        assert [turn["turn"] for turn in row["turns"]] == list(range(len(row["turns"])))
        for turn in row["turns"]:
            assert turn["observation"]
            assert row["instruction"] in turn["prompt"]
            assert bool(turn["action"]) != bool(turn["no_action"])
        assert row["tokens"] == sum(len(turn["token_ids"]) for turn in row["turns"])
    first, second = ([turn["token_ids"] for turn in found[n]["turns"]] for n in (0, 2))
    assert first != second


def test_lessons_are_shown_with_their_text(workspace, tmp_path):
    _, found = played(workspace, settings=WIDE, tasks=20, output=tmp_path / "r.jsonl")
    told = {lesson["id"]: lesson["text"] for row in found for turn in row["turns"] for lesson in turn["lessons"]}
    assert set(told.values()) <= {"lotus mug in drawer", "lotus heat with microwave"}
    assert told
    assert all(not turn["lessons"] for row in found if row["bank"] == "none" for turn in row["turns"])
    assert all(text in turn["prompt"] for row in found for turn in row["turns"] for text in
               [lesson["text"] for lesson in turn["lessons"]])  # fmt: skip


def test_the_first_sample_is_that_of_the_ordinary_evaluation(workspace, whole):
    for bank in BANKS:
        found = evaluate_revision("first", EvaluationRequest(tasks=TASKS, bank=bank), workspace)
        ours = [row for row in rows(whole) if row["bank"] == bank and row["replica"] == 0]
        theirs = [[turn.completion.text for turn in episode.turns] for episode in found.episodes]
        assert [[turn["answer"] for turn in row["turns"]] for row in ours] == theirs


PLACES = ("ResultFile.add@7", "ResultFile.add@8+", "write_atomically@1", "write_atomically@1+")


@pytest.mark.parametrize("place", [PLACES[1], *(pytest.param(each, marks=pytest.mark.full) for each in PLACES)])
def test_a_killed_evaluation_continues_to_the_same_file(workspace, whole, tmp_path, place):
    path = tmp_path / "results.jsonl"
    line = ("evaluate", "first", "--bank", "own", "--bank", "none", "--tasks", TASKS, "--samples", 2, "--output", path)
    killed = coevo(*map(str, line), workspace=workspace.root, kill=f"coevo.flows.evaluation.sample_results:{place}")
    assert killed.returncode == -9, killed.stderr
    kept = len(rows(path.with_name("results.jsonl.partial"))) - 1
    assert kept >= 6
    with path.with_name("results.jsonl.partial").open("a") as torn:
        torn.write('{"bank": "own", "ta')
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        real = ResultFile.add
        patch.setattr(ResultFile, "add", lambda self, row: asked.append(row) or real(self, row))
        played(workspace, samples=2, output=path, resume=True)
    assert len(asked) == len(rows(whole)) - kept
    assert path.read_bytes() == whole.read_bytes()
    again, _ = played(workspace, samples=2, output=path, resume=True)
    assert again["figures"] == json.loads(whole.with_suffix(".json").read_text())["figures"]


@pytest.mark.full
def test_five_hundred_tasks_survive_three_kills(workspace, tmp_path):
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    played(workspace, tasks=500, output=one)
    line = ("evaluate", "first", "--bank", "own", "--bank", "none", "--tasks", "500", "--resume", "--output", str(two))
    for count in (100, 300, 250):
        place = f"coevo.flows.evaluation.sample_results:ResultFile.add@{count}+"
        assert coevo(*line, workspace=workspace.root, kill=place).returncode == -9
    assert coevo(*line, workspace=workspace.root).returncode == 0
    assert one.read_bytes() == two.read_bytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"samples": 3}, "begun with samples = 2, and now it is 3"),
        ({"banks": ("own",)}, "begun with banks.none"),
        ({"settings": ["seed=4"]}, "begun with settings.seed = 0, and now it is 4"),
        ({"resume": False}, "already there: continue it with --resume"),
    ],
)
def test_a_file_of_another_evaluation_is_refused_and_stays(workspace, whole, change, said):
    before = whole.read_bytes()
    with pytest.raises(CoevoError, match=said):
        played(workspace, **{"samples": 2, "output": whole, "resume": True, **change})
    assert whole.read_bytes() == before


def test_a_file_in_use_is_refused(workspace, tmp_path):
    path = tmp_path / "results.jsonl"
    with ResultFile(path, {}).opened(resume=False), pytest.raises(CoevoError, match="another process evaluates"):
        played(workspace, output=path, resume=True)


def test_an_exported_directory_plays_as_its_revision(workspace, whole, tmp_path):
    export("first", tmp_path / "out", workspace)
    export("first@1", tmp_path / "early", workspace)
    path, early = tmp_path / "results.jsonl", tmp_path / "early.jsonl"
    played(workspace, str(tmp_path / "out"), samples=2, output=path)
    assert without_ids(rows(path)) == without_ids(rows(whole))
    for text, target in (("first@1", early), (str(tmp_path / "early"), tmp_path / "other.jsonl")):
        played(workspace, text, WIDE, tasks=10, banks=("own",), output=target)
    assert early.read_bytes() == (tmp_path / "other.jsonl").read_bytes()


def without_ids(found):
    """Rows without ids of entries: a file of entries names one that was edited by its present wording."""
    for row in found:
        for turn in row["turns"]:
            turn["lessons"] = [lesson["text"] for lesson in turn["lessons"]]
    return found


def test_a_bank_in_a_file_is_shown_like_that_of_a_run(workspace, tmp_path):
    from coevo.flows.history.revision_reference import reading

    with reading("first@1", workspace) as run:
        write_entries(run.bank().active(), tmp_path / "bank.jsonl")
    banks = (str(tmp_path / "bank.jsonl"), "first@1")
    _, found = played(workspace, "first@0", WIDE, tasks=20, banks=banks, output=tmp_path / "r.jsonl")
    one, other = ([row["turns"] for row in found if row["bank"] == bank] for bank in banks)
    assert one == other
    assert any(turn["lessons"] for turns in one for turn in turns)


@pytest.mark.parametrize("env", ["homerules", "babyai-rules", "rows"])
def test_a_model_in_a_directory_plays_any_environment(workspace, model, tmp_path, env):
    short = ["rollout.sampling.max_new_tokens=6", "rollout.max_turns=2"]
    for batch in (1, 16):
        path = tmp_path / f"{batch}.jsonl"
        found, played_rows = played(
            workspace, str(model), short, env, tasks=2, banks=("own",), samples=2, output=path, batch=batch
        )
        assert found["figures"]["own"]["lost"] == 0
        assert all(turn["prompt"].startswith("<|im_start|>") for row in played_rows for turn in row["turns"])
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "16.jsonl").read_bytes()


def test_a_recipe_gives_a_directory_its_prompts(workspace, model):
    short = ["rollout.sampling.max_new_tokens=4", "rollout.max_turns=1", "rollout.engine.rows=4"]
    found, _ = played(workspace, str(model), short, "textworld-coevo-rl-qwen3-0.6b", tasks=1, banks=("none",))
    assert (found["environment"], found["settings"]["context"]["experience_tokens"]) == ("textworld", 800)


def pickled(folder):
    torch.save({}, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def infinite(folder):
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][0] = torch.nan
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def own_code(folder):
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"auto_map": {"AutoModelForCausalLM": "evil.Model"}}))


def without_template(folder):
    (folder / "chat_template.jinja").unlink()


def acting(folder):
    env = {"type": "rows", "path": "/etc/tasks.jsonl", "reward": "evil:run"}
    (folder / "coevo.json").write_text(json.dumps({"env": env}))


def named_code(folder):
    (folder / "coevo.json").write_text(json.dumps({"env": {"type": "evil:Environment"}}))


@pytest.mark.parametrize(
    ("harm", "env", "said"),
    [
        (pickled, "homerules", "is a pickle"),
        (infinite, "homerules", "model.norm.weight is not finite"),
        (own_code, "homerules", "needs code of its own"),
        (without_template, "homerules", "no chat template"),
        (acting, None, "sets env.path = '/etc/tasks.jsonl'"),
        (named_code, None, "sets env.type = 'evil:Environment'"),
    ],
)
def test_a_directory_from_elsewhere_is_checked_before_it_is_used(workspace, model, tmp_path, harm, env, said):
    shutil.copytree(model, tmp_path / "model")
    harm(tmp_path / "model")
    with pytest.raises(CoevoError) as refused:
        played(workspace, str(tmp_path / "model"), env=env, banks=("own",))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"banks": ("own", "own")}, "is given twice"),
        ({"output": Path("results.csv")}, "ends in .jsonl"),
        ({"resume": True}, "name it with --output"),
        ({"panel": "nowhere"}, "is no panel of homerules"),
    ],
)
def test_what_cannot_be_is_refused(workspace, request_, said):
    with pytest.raises(CoevoError, match=said):
        played(workspace, **request_)


def test_a_served_agent_plays_as_in_this_process(tmp_path, monkeypatch):
    config = CONFIG.model_copy(update={"bank": None})
    agent = Agent(packaged(tmp_path / "made", config, bank=None))
    monkeypatch.setattr(
        "coevo.flows.evaluation.evaluate_samples.ServedWorker",
        lambda env, _, seed, turns: AskedPlayer(env, agent, seed, turns),
    )
    build(tmp_path / "workspace", overrides=["bank=null"], policy=tmp_path / "made" / "policy")
    workspace, found = Workspace(tmp_path / "workspace"), []
    for text, env in (("first@0", None), ("http://127.0.0.1:1", "homerules"), ("http://127.0.0.1:1", "first@0")):
        path = tmp_path / f"{len(found)}.jsonl"
        _, played_rows = played(workspace, text, env=env, banks=("own",), samples=2, output=path)
        found.append([[(turn["answer"], turn["action"]) for turn in row["turns"]] for row in played_rows])
    assert found[0] == found[1] == found[2]
    with pytest.raises(CoevoError, match="a served agent has its own bank"):
        played(workspace, "http://127.0.0.1:1", env="homerules", banks=("none",))
    checked = []
    monkeypatch.setattr("coevo.flows.evaluation.evaluate_samples.check_data", lambda *given: checked.append(given[-1]))
    played(workspace, "http://127.0.0.1:1", env="first@0", banks=("own",), output=None)
    assert checked == ["first@0"]  # that its data are those of the revision
