"""Tables from Python: rows become a file, functions become names, and what other processes cannot have is refused."""

import json
import sys

import pytest
from support import row_functions
from support.row_tables import ROWS, written

import coevo
from coevo.configs.rows_config import FunctionRewardConfig, JudgeRewardConfig
from coevo.envs.rows.task_table import load_table
from coevo.flows.configure import configure
from coevo.flows.console.options import as_typed
from coevo.utilities.errors import CoevoError

JUDGE = {"url": "http://127.0.0.1:9/v1", "model": "m", "prompt": "{answer}"}


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's own, in a package in a folder of their own."""
    (tmp_path / "mine" / "inside").mkdir(parents=True)
    (tmp_path / "mine" / "inside" / "__init__.py").write_text("")
    (tmp_path / "mine" / "inside" / "rates.py").write_text("def exact(answer, row):\n    return 1.0\n")
    monkeypatch.syspath_prepend(tmp_path / "mine")
    from inside import rates

    yield rates
    for name in ("inside", "inside.rates"):
        sys.modules.pop(name)


def test_a_file_and_a_function_are_settings_of_a_run(tmp_path, module):
    env = coevo.from_rows(written(tmp_path), module.exact, answer="answer", held_out=0.5)
    assert env.config.reward == (FunctionRewardConfig(function="inside.rates:exact"),)
    assert env.python_path == (str(tmp_path / "mine"),)
    config = configure("rows-grpo-qwen3-0.6b", as_typed(env.settings()))
    assert config.env == env.config
    assert config.python_path == env.python_path
    assert (config.evaluation.panels, config.context.parser) == (("held-out",), "auto")


def test_a_form_of_answers_that_is_named_stays(tmp_path, module):
    settings = as_typed(coevo.from_rows(written(tmp_path), module.exact).settings())
    assert configure("rows-grpo-qwen3-0.6b", [*settings, "context.parser=tag"]).context.parser == "tag"
    assert configure("rows-grpo-qwen3-0.6b", [*settings, "context.parser=auto"]).context.parser == "auto"
    tools = as_typed(coevo.from_rows(written(tmp_path), module.exact, tools=[row_functions.add]).settings())
    assert configure("rows-grpo-qwen3-0.6b", tools).context.parser == "auto"


def test_all_kinds_of_rewards_and_tools_are_taken(tmp_path):
    rewards = [
        row_functions.exact,
        "support.row_functions:short",
        {"function": row_functions.share, "call": "batched", "weight": 0.5},
        row_functions.slow,
        JUDGE,
    ]
    env = coevo.from_rows(written(tmp_path), rewards, tools=[row_functions.add, "support.row_functions:look"])
    assert [each.title for each in env.config.reward] == ["exact", "short", "share", "slow", "judge"]
    assert [each.call for each in env.config.reward[:4]] == ["plain", "plain", "batched", "async"]
    assert isinstance(env.config.reward[4], JudgeRewardConfig)
    assert env.config.tools == ("support.row_functions:add", "support.row_functions:look")


def test_rows_are_kept_in_the_workspace_under_their_hash(tmp_path):
    envs = [coevo.from_rows(rows, row_functions.exact, workspace=tmp_path) for rows in (ROWS, iter(ROWS))]
    (path,) = (tmp_path / "tables").iterdir()
    assert [env.config.path for env in envs] == [str(path)] * 2
    assert path.name == f"{load_table(str(path)).digest[:16]}.jsonl"
    assert load_table(str(path)).rows == tuple(ROWS)


def test_datasets_are_rows(tmp_path):
    datasets = pytest.importorskip("datasets")
    whole = datasets.Dataset.from_list(ROWS)
    env = coevo.from_rows(whole, row_functions.exact, workspace=tmp_path)
    assert load_table(env.config.path).rows == tuple(ROWS)
    splits = datasets.DatasetDict(train=whole.select(range(40)), test=whole.select(range(40, 60)))
    env = coevo.from_rows(splits, row_functions.exact, workspace=tmp_path)
    assert env.config.split == "split"
    assert load_table(env.config.path).rows[59] == {"split": "test", **ROWS[59]}


def test_what_other_processes_cannot_import_is_one_line(tmp_path, monkeypatch):
    path = written(tmp_path)

    def inner(answer, row):
        return 1.0

    main = type(inner)(inner.__code__, {}, "exact")
    main.__module__, main.__qualname__ = "__main__", "exact"
    other = type(inner)(inner.__code__, {}, "exact")
    other.__module__, other.__qualname__ = "support.row_functions", "exact"
    refused = {
        "exact is defined in a notebook or the main script": main,
        "is defined in another function, a class or no file": inner,
        "<lambda> is defined in another function": lambda answer, row: 1.0,
        "is no function": row_functions.Fair,
        "has another exact than this one": other,
        "3 is no function": 3,
    }
    for says, function in refused.items():
        for settings in ({"reward": function}, {"reward": "support.row_functions:exact", "tools": [function]}):
            with pytest.raises(CoevoError) as caught:
                coevo.from_rows(path, **settings)
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "settings", "says"),
    [
        ([], {}, "from_rows: it has no row"),
        ([1], {}, "from_rows, row 1: int is no row"),
        (1, {}, "from_rows: int is no table: give a path, or one mapping per row"),
        ({"prompt": ["a", "b"]}, {}, "from_rows, row 1: str is no row"),
        ({"train": 1}, {}, "from_rows: int is no table"),
        (b"a", {}, "from_rows, row 1: int is no row"),
        (ROWS, {"splits": "x"}, "from_rows: splits: no such key. Did you mean 'split'?"),
        (ROWS, {"held_out": 2}, "from_rows: held_out = 2"),
        (ROWS, {"reward": []}, "names no reward: set package.module:function"),
        (ROWS, {"reward": {"function": "a:b", "low": 2.0}}, "low=2 is not below high=1"),
    ],
)
def test_settings_that_cannot_be_are_one_line(tmp_path, rows, settings, says):
    with pytest.raises(CoevoError) as caught:
        coevo.from_rows(rows, **{"reward": row_functions.exact, "workspace": tmp_path, **settings})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_setting_of_the_caller_wins(tmp_path):
    env = coevo.from_rows(written(tmp_path), row_functions.exact)
    given = as_typed({**env.settings(), "evaluation.panels": ["held-out"], "env.held_out": 0.5})
    assert configure("rows-grpo-qwen3-0.6b", given).env.held_out == 0.5
    assert json.loads(given[1].partition("=")[2]) == ["held-out"]
