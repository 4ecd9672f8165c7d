"""The guide to a policy behind an API, followed against a local server."""

import re
import shlex
from pathlib import Path

import pytest
from support.completions import completions
from support.endpoint_expert import ExpertEndpoint
from support.guide_files import files_of
from support.runs import coevo, states

from coevo.configs.load.load import load_recipe
from coevo.configs.policy_config import EndpointPolicyConfig
from coevo.flows.cli.app import main

PAGE = "api-policy.md"
TEXT = (Path(__file__).parents[2] / "docs" / PAGE).read_text(encoding="utf-8")
KEY = "EXAMPLE_API_KEY"
BRIEF = (
    "iterations=1", "bank.every=1", "rollout.tasks=2", "bank.writer.candidates=2", "bank.admission.replays=2",
    "evaluation.tasks=4", "evaluation.final_panels=[]",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in files_of(PAGE).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setenv(KEY, "sk-of-the-page-0123456789")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands():
    """Commands of the page, without ``coevo``."""
    return [shlex.split(line) for line in re.findall(r"^\$ coevo (.*)$", TEXT, re.MULTILINE)]


def test_the_dry_run_says_what_the_page_says_and_asks_nothing(folder, capsys):
    with completions(ExpertEndpoint()) as (url, asked):
        with pytest.raises(SystemExit) as stop:
            main([*commands()[0], f"policy.url={url}"])
        assert not asked
    said = capsys.readouterr().out
    assert stop.value.code == 0, said
    (shown,) = re.findall(r"^```\n(about .*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    assert re.findall(r"^cost      (.*)$", said, re.MULTILINE) == shown.splitlines()
    assert said.rstrip().endswith("ready to start")


def test_without_the_key_nothing_starts(folder, monkeypatch, capsys):
    monkeypatch.delenv(KEY)
    with pytest.raises(SystemExit) as stop:
        main(commands()[0])
    assert stop.value.code == 1
    assert f"policy.key={KEY}: the environment has no such variable" in capsys.readouterr().out


def test_the_recipes_of_the_page_are_possible_and_so_are_all_without_an_update(folder):
    settings = ("policy.url=https://api.example/v1", "policy.model=m")
    for name in files_of(PAGE):
        assert isinstance(load_recipe(str(folder / name), settings).policy, EndpointPolicyConfig)
    for name in ("experience-only", "react", "reflexion-style", "memrl-style", "jerp"):
        (folder / "other.yaml").write_text(f"defaults: [recipes/homerules-{name}, models/endpoint]\n")
        config = load_recipe(str(folder / "other.yaml"), settings)
        assert (config.policy.type, config.update, config.warmstart) == ("endpoint", None, None)


def test_the_table_names_every_setting():
    table = TEXT[TEXT.index("| `policy.`") : TEXT.index("A request has")]
    named = set(re.findall(r"`(\w+)`", table))
    assert set(EndpointPolicyConfig.model_fields) - {"type"} <= named


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_guide_is_followed(folder, prefect_url, monkeypatch):
    monkeypatch.setenv("PREFECT_API_URL", prefect_url)
    endpoint, workspace = ExpertEndpoint(), folder / "workspace"
    with completions(endpoint) as (url, asked):
        _, run, log, *_ = commands()
        recipe = str(folder / run[1])
        done = coevo("run", recipe, *run[2:], f"policy.url={url}", *BRIEF, workspace=workspace)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "by policy.price" in done.stdout and "a cost of 2.00" in done.stdout
        assert coevo(*log, workspace=workspace).returncode == 0
        other = coevo("run", str(folder / "reflexion.yaml"), f"policy.url={url}", *BRIEF[:1], "rollout.tasks=2",
                      "evaluation={tasks: 2, final_panels: [], discovery: 0}", workspace=workspace)  # fmt: skip
        assert other.returncode == 0, other.stdout + other.stderr
    assert {request.headers["authorization"] for request in asked} == {"Bearer sk-of-the-page-0123456789"}
    *_, last = states(workspace, "household")
    assert last["metrics"]["bank/rejected"] + last["metrics"]["bank/admitted"] > 0
    assert "sk-of-the-page" not in done.stdout + done.stderr
    assert not [path for path in workspace.rglob("*.json*") if b"sk-of-the-page" in path.read_bytes()]
