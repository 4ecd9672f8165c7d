"""Documents say what the kept results say, and a finding that did not come out is never told without that."""

import json
import re
from pathlib import Path

import pytest

from benchmarks import evidence
from benchmarks.evidence import PAGES, filled, in_order, is_decided, kept, units
from coevo.configs.load.load_study import load_studies, load_study
from coevo.flows.studies.kept_study import result_in
from coevo.flows.studies.result import REVERSED, UNDECIDED

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
STANDINGS = {name: result_in(document).standing() for name, document in kept().items()}


@pytest.mark.parametrize("page", PAGES)
def test_the_tables_of_a_page_are_those_of_the_kept_results(page):
    text = (ROOT / page).read_text("utf-8")
    assert "<!-- made: " in text
    assert filled(text) == text, "print them anew: python -m benchmarks tables"


def test_each_block_of_a_document_is_on_a_page_that_is_printed():
    made = {path for path in DOCUMENTS if "<!-- made: " in path.read_text("utf-8")}
    assert made == {ROOT / page for page in PAGES}


def test_a_kept_file_says_what_its_runs_say():
    for path in evidence.KEPT.glob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        for each in (document, *document.get("earlier", [])):
            if each["runs"]:
                result = result_in(each).document()
                assert {key: result[key] for key in ("summary", "standing", "rows")} == {
                    key: each[key] for key in ("summary", "standing", "rows")
                }, path


def test_a_finding_that_is_reversed_or_undecided_is_shown_as_such_wherever_it_is_mentioned():
    assert REVERSED in STANDINGS.values()
    assert UNDECIDED in STANDINGS.values()
    assert {(path.name, said) for path in DOCUMENTS for said in _untold(path.read_text("utf-8"))} == set()


def test_a_mention_without_the_standing_is_noticed():
    assert _untold("As `slea-rl-retrieval` shows, every step is best.\n\nIt is reversed.") == ["slea-rl-retrieval"]
    assert _untold("- `slea-rl-retrieval`: every step\n  is best, **reversed**\n- `jerp-frozen-rules`") == []


def _untold(text):
    """Studies that a paragraph, a row or an item mentions without saying how they stand."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!-- made: unplayed -->.*?<!-- /made -->", "", text, flags=re.DOTALL)
    parts = re.split(r"\n\n|\n(?=[-|] ?)", text)
    open_ones = {name for name, standing in STANDINGS.items() if standing in (REVERSED, UNDECIDED)}
    rows = [part for part in parts if not part.startswith("|")] + _tables(parts)
    return sorted(
        name for part in rows for name in open_ones if f"`{name}`" in part and STANDINGS[name] not in part.lower()
    )


def _tables(parts):
    """Rows of the tables, those of one study together: a study with several claims stands by all of them."""
    by_study = {}
    for part in parts:
        if part.startswith("|") and (found := re.match(r"\| `([\w.-]+)`", part)):
            by_study[found[1]] = by_study.get(found[1], "") + part
    return list(by_study.values())


def test_claims_of_the_readme_are_played_first_then_reversed_findings_then_those_never_run():
    found = {"slea-rl-retrieval": {"standing": REVERSED}, "coevo-rl-hits": {"standing": "as the paper"}}
    order = [study.name for study in in_order(load_studies(), found)]
    assert tuple(order[: len(evidence.CLAIMS)]) == evidence.CLAIMS
    assert order[len(evidence.CLAIMS)] == "slea-rl-retrieval"
    assert order[-1] == "coevo-rl-hits"
    assert "grpo-tuning" not in order
    assert not {study.name for study in load_studies() if study.needs} & set(order)


def test_what_is_kept_of_development_worlds_is_not_a_decision(tmp_path):
    assert not is_decided(load_study("slea-rl-retrieval"), tmp_path)
    study = {"seeds": 3, "arms": [{"name": "a"}, {"name": "b"}]}
    document = {"study": study, "runs": [{"arm": "a"}, {"arm": "b"}, {"arm": "a"}]}
    assert units(document) == "1 seeds of a development world"
    assert units(document | {"block": 4, "notes": ["after 2 runs"]}) == "1 of 3 reserved worlds, block 4; after 2 runs"


@pytest.mark.parametrize(("value", "shown"), [(0.5, ".500"), (-0.25, "-.250"), (20.5, "20.500"), (10.0, "10.000")])
def test_numbers_are_shown_without_a_leading_nought(value, shown):
    assert evidence.number(value) == shown
