"""``coevo table`` reads held-out episodes of runs and files of `coevo evaluate`, and prints what papers print."""

import json

import pytest
from support import small_run

RUNS = ("grpo", "grpo2", "frozen", "frozen2", "first", "second")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of each of three methods: success 1.0 and 0.5, 0.25 and 0.5, 0 and 0.25."""
    root = tmp_path_factory.mktemp("table")
    outcomes = {"first": "1111", "second": "1010", "grpo": "1000", "grpo2": "1100", "frozen": "0000", "frozen2": "0001"}
    settings = {"grpo": ["bank=null"], "frozen": ["update=null"]}
    for name, last in outcomes.items():
        seed = int(name.endswith("2") or name == "second")
        more = settings.get(name.rstrip("2"), [])
        small_run.build(root, name, [f"seed={seed}", *more], ("0000", None, None, last))
    return root


def test_the_table_has_a_row_per_method_over_its_seeds(coevo, runs):
    found = json.loads(coevo("table", *RUNS, "--json", "--workspace", runs).out)
    rows = {row["role"]: row for row in found["rows"]}
    assert [row["seeds"] for row in found["rows"]] == [[[0, 0], [1, 0]]] * 3
    assert rows[None]["values"]["success"]["mean"] == 75.0
    assert rows["no memory"]["values"]["success"]["mean"] == 37.5
    assert rows["frozen with a bank"]["values"]["success"]["mean"] == 12.5
    assert rows[None]["values"]["length"]["mean"] == 2.0 and rows[None]["values"]["score"]["mean"] == 75.0
    # Tasks 0 and 2 are of kind heat, 1 and 3 of kind put: 1111 and 1010.
    assert rows[None]["values"]["kind/heat"]["mean"] == 100.0
    # 100 and 0: t of one degree is 12.706, the deviation of the two over the root of 2 is 50.
    assert rows[None]["values"]["kind/put"]["high"] == pytest.approx(50 + 12.7062 * 50, rel=1e-5)
    assert [(each["mean"], each["seeds"]) for each in found["differences"]] == [(37.5, 2), (62.5, 2)]


def test_the_text_fits_a_terminal_and_names_methods_seeds_and_intervals(coevo, runs):
    lines = coevo("table", *RUNS, "--workspace", runs).out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0] == "homerules seen-houses, 4 tasks, mean ± half of the 95 % interval over seeds"
    assert lines[1].split() == ["method", "seeds", "success", "score", "length"]
    assert any(line.split()[-2:] == ["heat", "put"] for line in lines)
    assert any(line.startswith("homerules-coevo-rl") and "75.0±317.7" in line for line in lines)
    assert lines[-3:] == [
        "success minus that of the rows beside it, paired by seed",
        "method              minus no memory  minus frozen with bank",
        "homerules-coevo-rl  +37.5±476.5      +62.5±476.5           ",
    ]


def test_markdown_is_one_table(coevo, runs):
    lines = coevo("table", *RUNS, "--markdown", "--workspace", runs).out.splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 3 and len({line.count("|") for line in table}) == 1
    assert table[0] == "| method | seeds | success | score | length | heat | put |"


def test_what_is_missing_beside_a_method_is_named_with_its_command(refused, runs):
    said = refused("table", "first", "--workspace", runs)
    assert "coevo run homerules-grpo seed=0" in said and "coevo run homerules-experience-only seed=0" in said


def test_a_panel_that_was_not_played_and_a_revision_without_one_are_one_line(refused, runs):
    assert "was not evaluated on other-facts, but on seen-houses" in refused(
        "table", "first", "--panel", "other-facts", "--workspace", runs
    )
    assert "was not evaluated" in refused("table", "first@1", "--workspace", runs)
    assert "cannot be combined" in refused("table", "first", "--json", "--markdown", "--workspace", runs)


ABOUT = {"target": "first@3", "panel": "seen-houses", "panel_hash": "p" * 64, "samples": 2, "tasks": 2}


def results(path, about, solved, lost=()):
    """A file of `coevo evaluate`: two samples of two tasks, with each bank."""
    rows = [
        {"bank": bank, "task": str(number // 2), "replica": number % 2, "kind": "heat", "success": mark == "1",
         "reward": float(mark), "lost": "gone" if number in lost else "", "turns": [{}] * 3}
        for bank in about["banks"] for number, mark in enumerate(solved)
    ]  # fmt: skip
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    path.with_suffix(".json").write_text(json.dumps(about))
    return path


@pytest.fixture
def files(runs, tmp_path):
    """Results of each method's first seed, two samples of two tasks."""
    from coevo.lineage.workspace import Workspace

    made = {}
    for name, solved in {"first": "1110", "grpo": "1000", "frozen": "0000"}.items():
        config = Workspace(runs).existing(name).read_config().model_dump(mode="json")
        settings = {key: config[key] for key in config.keys() - {"iterations", "update", "warmstart", "approval"}}
        about = ABOUT | {"target": f"{name}@3", "settings": settings, "banks": {"own": ""}}
        made[name] = (about, results(tmp_path / f"{name}.jsonl", about, solved))
    return made


def test_files_of_evaluate_have_the_mean_over_samples(coevo, runs, files):
    paths = [path for _, path in files.values()]
    found = json.loads(coevo("table", *paths, "--json", "--workspace", runs).out)
    (row,) = (row for row in found["rows"] if row["role"] is None)
    assert (row["values"]["success"]["mean"], row["values"]["pass"]["mean"]) == (75.0, 100.0)
    assert row["values"]["length"]["mean"] == 3.0
    shown = coevo("table", *paths, "--workspace", runs).out
    assert "avg@2" in shown and "pass@2" in shown


def test_lost_episodes_are_in_no_figure(coevo, runs, files, tmp_path):
    about, path = files["first"]
    results(path, about, "1110", lost=[3])
    found = json.loads(coevo("table", *(path for _, path in files.values()), "--json", "--workspace", runs).out)
    (row,) = (row for row in found["rows"] if row["role"] is None)
    assert row["values"]["success"]["mean"] == 100.0


def test_the_policy_of_a_directory_is_a_row_but_no_baseline(coevo, refused, runs, files, tmp_path):
    about, _ = files["frozen"]
    path = results(tmp_path / "other.jsonl", about | {"target": "/some/model"}, "0000")
    shown = [each for name, (_, each) in files.items() if name != "frozen"]
    assert "a frozen policy with a bank: coevo run" in refused("table", *shown, path, "--workspace", runs)


DAMAGE = ("", "[]", "{}", '{"bank": "own"}', "\x00", '{"bank": "own", "lost": "", "success": true, "reward": NaN}')


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_one_line(refused, runs, files, damage):
    _, path = files["first"]
    for each in (path, path.with_suffix(".json")):
        before = each.read_text()
        each.write_text(damage + "\n")
        assert str(path) in refused("table", path, "--workspace", runs)
        each.write_text(before)
    path.with_suffix(".json").unlink()
    assert "first.json is not beside it" in refused("table", path, "--workspace", runs)


def test_a_file_that_is_not_whole_is_refused(refused, runs, files):
    _, path = files["first"]
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    assert "has 3 of 4 episodes of bank own: evaluate with --resume" in refused("table", path, "--workspace", runs)
