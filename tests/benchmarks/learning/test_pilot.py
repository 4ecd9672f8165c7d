"""The table of the pilot, by hand, and the recipes that it plays."""

from benchmarks.bench import RESULTS
from benchmarks.learning.pilot import ARMS, LATER_SEEDS, PANEL, SEEDS, report, seeds_of
from coevo.configs.load.load import load_recipe


def test_the_table_has_every_recipe_with_its_gain_and_its_lead_by_seed(capsys):
    report({"one-env-experience-only": results(0.25, 0.4, 0.5, 0.6), "one-env-coevo-rl": results(0.25, 0.5, 0.6, 0.7)})
    frozen, both = capsys.readouterr().out.splitlines()[2:]
    assert "0.250   0.500   0.400" in frozen
    assert frozen.endswith("+0.250 [+0.002, +0.498]")
    assert both.endswith("+0.100 [+0.100, +0.100]")
    report({"one-env-grpo": results(0.25, 0.4, 0.5, 0.6)})
    (alone,) = capsys.readouterr().out.splitlines()[2:]
    assert alone.endswith("+0.250 [+0.002, +0.498]"), "without a frozen policy beside it there is no lead"


def test_seeds_that_were_played_before_a_change_of_settings_judge_nothing(capsys):
    for recipe, seeds in LATER_SEEDS.items():
        assert seeds_of(recipe) == seeds and len(seeds) == len(SEEDS)
        played = {int(path.stem.rsplit("-", 1)[1]) for path in (RESULTS / "ledger/pilot").glob(f"{recipe}-*.json")}
        assert played == {*SEEDS} and not played & {*seeds}
    report({"lifelong-db-experience-only": results(0.25, 0.4, 0.5), "lifelong-db-grpo": results(0.25, 0.5, 0.7)})
    assert capsys.readouterr().out.splitlines()[3].count("[") == 1, (
        "the lead over other seeds would pair what is not paired"
    )


def results(start, *ends):
    return [{"start": start, "end": end, "loop_seconds": 60.0} for end in ends]


def test_the_arms_of_an_environment_start_from_one_policy_and_end_on_one_panel():
    for name, methods in ARMS.items():
        recipes = [load_recipe(f"{name}-{method}") for method in methods]
        assert all(PANEL in recipe.evaluation.panels for recipe in recipes)
        starts = [recipe.model_dump(include={"env", "policy", "context"}) for recipe in recipes]
        assert all(start == starts[0] for start in starts)
        cloned = [recipe.warmstart for recipe in recipes if not (name == "lifelong-db" and recipe.bank is None)]
        assert all(warmstart == cloned[0] for warmstart in cloned)
        assert [recipe.bank is None for recipe in recipes] == [method == "grpo" for method in methods]
        assert [recipe.update is None for recipe in recipes] == [method == "experience-only" for method in methods]
