"""``coevo run --env --method --model``: a pairing without a recipe of its own, looked at before it starts, and run."""

import json
import shlex

import pytest
from support import runs
from support.chat_model import small_model

from coevo import Pairing
from coevo.configs.load.load import load_recipe
from coevo.configs.load.paper_tables import paper_rows
from coevo.configs.load.shipped_files import names
from coevo.envs.shipped import SHIPPED
from coevo.flows import api
from coevo.flows.configure import configure_pairing
from coevo.utilities.errors import CoevoError

HERE = [row for row in paper_rows() if row.is_here and not SHIPPED[row.pairing.env].remedy]
"""Rows whose environments can be played here."""
LACKING = {row.pairing.env: row for row in paper_rows() if row.is_here and SHIPPED[row.pairing.env].remedy}
"""A row of each environment that needs what the user downloads."""
ONE_EACH = {(row.pairing.env, row.pairing.method): row for row in HERE}
"""A row of each pairing of environment and method in the tables."""
QUICK = {row.pairing.method: row for row in HERE if row.pairing.env == "minesweeper"}
"""A row of each method, in an environment that is quick to rehearse."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with random weights."""
    return small_model(tmp_path_factory.mktemp("models") / "tiny", positions=2**17)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """No name is looked up, and no GPU is found."""

    def refuse(*asked, **given):
        raise AssertionError(f"a dry run asked the network for {asked}")

    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def assert_ready(done):
    assert (done.code, done.out.splitlines()[-1]) == (0, "ready to start"), done.out + done.err


def on_the_papers_machine(coevo, row):
    """Look at a row as the tables have it, whose model is not here."""
    machine = [] if row.pairing.model == "endpoint" else ["--on", "4xh200"]
    assert_ready(coevo(*shlex.split(row.command)[1:], "--dry-run", *machine))


@pytest.mark.parametrize("method", QUICK)
def test_a_method_of_the_tables_is_ready_to_start(coevo, method):
    on_the_papers_machine(coevo, QUICK[method])


@pytest.mark.parametrize("env", sorted({row.pairing.env for row in HERE}))
def test_an_environment_of_the_tables_is_ready_to_start_with_the_files_of_a_model(coevo, folder, env):
    row = next(row for row in HERE if (row.pairing.env, row.pairing.method) == (env, "react"))
    assert_ready(coevo("run", "--env", env, "--method", "react", "--model", folder, *row.settings, "--dry-run"))


def test_an_environment_that_lacks_its_data_is_refused_in_one_line(refused):
    for row in LACKING.values():
        said = refused(*shlex.split(row.command)[1:], "--dry-run", "--on", "4xh200")
        assert said.startswith("coevo: ") and said.count("\n") == 1


@pytest.mark.full
@pytest.mark.parametrize("env", sorted({env for env, _ in ONE_EACH}))
def test_every_pairing_of_the_tables_is_ready_to_start(coevo, env):
    for row in ONE_EACH.values():
        if row.pairing.env == env:
            on_the_papers_machine(coevo, row)


def test_the_dry_run_names_the_pairing(coevo, folder):
    pairing = ("--env", "sokoban", "--method", "grpo", "--model", folder)
    said = json.loads(coevo("run", *pairing, "iterations=3", "--dry-run", "--json").out)
    assert (said["recipe"], said["iterations"], said["ready"]) == ("sokoban_grpo_tiny", 3, True)


NAME = "name one recipe, or all of --env, --method and --model"


PARTS = ["--env", "sokoban", "--method", "grpo", "--model", "scratch"]


def with_part(option, value):
    words = list(PARTS)
    words[words.index(option) + 1] = value
    return words


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], f"Which run? {NAME}"),
        (["--env", "sokoban"], f"--method and --model are missing: {NAME}"),
        (["--env", "sokoban", "--method", "grpo", "seed=1"], f"--model is missing: {NAME}"),
        (["sokoban-grpo", "--model", "scratch"], f"'sokoban-grpo' is a recipe, which has its own model: {NAME}"),
        (with_part("--env", "sokobn"), "No environment 'sokobn'. Did you mean 'sokoban'?"),
        (with_part("--method", "grppo"), "No method 'grppo'. Did you mean 'grpo'?"),
        (with_part("--model", "scrach"), "No model 'scrach'. Did you mean 'scratch'?"),
        ([*PARTS, "env.boxs=1"], "sokoban_grpo_scratch: env.boxs: no such key. Did you mean 'boxes'?"),
    ],
)
def test_what_is_no_pairing_is_one_line_that_names_what_is(refused, tmp_path, words, says):
    assert refused("run", *words, "--workspace", tmp_path / "none").startswith(f"coevo: {says}")
    assert not (tmp_path / "none").exists()


def test_a_model_that_is_not_here_is_named_with_the_command_that_downloads_it(coevo):
    done = coevo("run", "--env", "sokoban", "--method", "grpo", "--model", "qwen3-0.6b", "--dry-run")
    assert done.code == 1 and "`hf download Qwen/Qwen3-0.6B`" in done.out


def test_python_composes_the_same(folder):
    config = configure_pairing(Pairing("webshop", "react", str(folder)), ["seed=7"])
    assert (config.recipe, config.seed, config.policy.path) == ("webshop_react_tiny", 7, str(folder))
    with pytest.raises(CoevoError, match="No method 'reakt'"):
        api.run(Pairing("webshop", "reakt", str(folder)))


SMALL = ["env.houses=1", "iterations=1", "evaluation.tasks=2", "rollout.tasks=2", "rollout.group_size=2"]


@pytest.mark.full
@pytest.mark.usefixtures("servers_end")
def test_a_pairing_runs_and_is_shown_with_its_parts(tmp_path):
    parts = ("--env", "homerules", "--method", "grpo", "--model", "scratch")
    started = runs.coevo("run", *parts, *SMALL, "warmstart.steps=1", workspace=tmp_path)
    assert started.returncode == 0, started.stderr
    run = "homerules_grpo_scratch-1"
    resumed = runs.coevo("resume", run, "--iterations", "2", workspace=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    found = api.runs(workspace=tmp_path).loc[run]
    assert (found["recipe"], found["status"], found["iteration"]) == ("homerules_grpo_scratch", "finished", 2)


def test_recipes_lists_the_rows_with_their_commands(coevo):
    shown = coevo("recipes", "--papers").out
    rows = json.loads(coevo("recipes", "--papers", "--json").out)
    assert len(rows) == len(paper_rows())
    for row in rows:
        assert (row["command"] is None) == (row["pairing"]["env"] not in names("envs"))
        assert row["command"] is None or row["command"] in shown
    assert {each["name"] for each in json.loads(coevo("recipes", "--json").out)} == set(names("recipes"))
    assert load_recipe("sokoban-grpo").recipe == "sokoban-grpo"
