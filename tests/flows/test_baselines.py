import json

from flows.baselines import equal_time_baseline


def test_without_results_it_says_how_to_get_them(tmp_path):
    assert equal_time_baseline(tmp_path) == "run `make bench`"


def test_it_gives_mean_and_range_of_the_policy_only_cells(tmp_path):
    for name, success in {"policy-only-1": 0.25, "policy-only-2": 0.35, "joint-1": 0.9}.items():
        (tmp_path / f"{name}.json").write_text(json.dumps({"success": {"seen-houses": success}}))
    assert equal_time_baseline(tmp_path) == "0.300 (2 seeds, 0.250 to 0.350)"
