"""Every row of the papers' tables is a pairing that composes, once its environment is part of this version."""

import shlex

import pytest

from coevo.configs.load import paper_tables
from coevo.configs.load.load_study import configured
from coevo.configs.load.pairing import load_pairing
from coevo.configs.load.paper_tables import (
    NOT_HERE,
    pairings_page,
    paper_rows,
    papers,
    table_studies,
    table_study,
)
from coevo.configs.load.shipped_files import names
from coevo.utilities.errors import ConfigError

ROWS = paper_rows()
BASELINES = {"grpo", "rloo", "gigpo", "ppo", "memrl-style", "skillrl-style", "reflexion-style", "react"}


@pytest.mark.parametrize("env", sorted({row.pairing.env for row in ROWS}))
def test_every_row_composes_where_its_environment_is_here(env):
    rows = [row for row in ROWS if row.pairing.env == env]
    assert {row.is_here for row in rows} == {env in names("envs")}
    for row in rows:
        assert row.pairing.method in names("methods") and row.pairing.model in names("models")
        if row.is_here:
            for gpus in (0, 4):
                load_pairing(row.pairing, row.settings, lambda count=gpus: count)


def test_a_row_composes_in_any_environment_but_for_the_settings_of_its_own():
    """So rows of environments that are not here yet will compose, too."""
    for row in ROWS:
        anywhere = [each for each in row.settings if not each.startswith("env.")]
        pairing = row.pairing.__class__("homerules", row.pairing.method, row.pairing.model)
        load_pairing(pairing, anywhere, lambda: 4)


def test_a_setting_that_does_not_exist_is_found():
    row = next(row for row in ROWS if row.is_here)
    with pytest.raises(ConfigError):
        load_pairing(row.pairing, [*row.settings, "rollout.nope=1"])


def test_the_tables_of_all_five_papers_are_there_with_the_baselines():
    assert [paper.paper for paper in papers().papers] == ["CoEvo-RL", "SLEA-RL", "Context-lite", "JERP", "RetroAgent"]
    assert {row.pairing.method for row in ROWS} >= BASELINES | {
        "coevo-rl",
        "slea-rl",
        "context-lite",
        "jerp",
        "retroagent",
    }
    envs = {paper.paper: {env for table in paper.tables for env in table.envs} for paper in papers().papers}
    assert envs == {
        "CoEvo-RL": {"appworld", "tau2", "lifelong-os", "lifelong-db"},
        "SLEA-RL": {"alfworld", "webshop", "searchqa"},
        "Context-lite": {"babyai"},
        "JERP": {"alfworld", "webshop"},
        "RetroAgent": {"alfworld", "webshop", "sokoban", "minesweeper"},
    }


def test_notes_are_about_what_the_tables_have():
    differs = papers().differs
    assert set(differs.envs) == {row.pairing.env for row in ROWS}
    assert set(differs.models) | set(differs.methods) <= {row.pairing.model for row in ROWS} | {
        row.pairing.method for row in ROWS
    }


def test_a_command_is_what_the_shell_reads():
    for row in ROWS:
        if row.is_here:
            words = shlex.split(row.command)
            assert words[:8:2] == ["coevo", "--env", "--method", "--model"]
            assert words[8:] == list(row.settings)


def test_the_page_has_every_row_and_computes_which_environments_are_here(monkeypatch):
    page = pairings_page()
    assert page.count("\n| ") == len(ROWS) + page.count("\n| environment |")
    for row in ROWS:
        assert f"| {row.pairing.env} | {row.name} | {row.pairing.method} | " in page
        assert row.command in page
    here = paper_tables.shipped("envs")
    monkeypatch.setattr(paper_tables, "shipped", lambda kind: here | {"appworld": None})
    assert "coevo run --env appworld" in pairings_page()
    monkeypatch.setattr(paper_tables, "shipped", lambda kind: {})
    assert pairings_page().count(NOT_HERE) == len(ROWS)


@pytest.mark.parametrize("name", table_studies())
def test_a_table_is_a_study_of_its_rows_with_both_baselines(name):
    study, (paper, table, env) = table_study(name, "qwen3-4b", "held-out"), table_studies()[name]
    methods = [arm.pairing[1] for arm in study.arms]
    assert {*methods} == {row.method for row in table.rows if row.model is None} | {"grpo", "experience-only"}
    assert {(arm.pairing[0], arm.pairing[2]) for arm in study.arms} == {(env, "qwen3-4b")}
    assert (study.paper, study.figure) == (paper, table.table)
    for arm in study.arms if env in names("envs") else ():
        assert configured(study, arm, 1).seed == 1
    if env in names("envs"):
        assert f"`coevo ablate {name} --model DIR` runs" in pairings_page()
