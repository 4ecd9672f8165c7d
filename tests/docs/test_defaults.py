"""docs/defaults.md is what the configuration and the declared values of the papers generate."""

import pytest
import yaml
from support.defaults import GIVEN, PAGE, given, page, settings, source

from coevo.configs.load.shipped_files import ROOT

DEPARTURES = {
    "coevo-rl": {"bank.retrieval.scoped", "bank.writer.type", "bank.admission.per"},
    "slea-rl": {"bank.retrieval.scoped", "bank.writer.type", "bank.admission.ties"},
    "context-lite": set(),
    "jerp": {"bank.writer.type"},
    "retroagent": {"bank.writer.type", "update.reward.potential"},
}
"""Settings in which a method has another value than its paper; each is explained in docs/papers.md."""


def test_the_page_is_generated():
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("method", GIVEN)
def test_a_value_of_a_paper_is_that_of_the_method_or_a_known_departure(method):
    here = settings(method)
    assert set(given(method)) <= set(here)
    assert {key for key, (_, theirs) in given(method).items() if here[key] != theirs} == DEPARTURES[method]


@pytest.mark.parametrize("method", GIVEN)
def test_no_setting_stands_in_two_places_of_a_paper(method):
    keys = [key for values in GIVEN[method].values() for key in values]
    assert len(keys) == len({*keys})


@pytest.mark.parametrize("method", GIVEN)
def test_every_value_that_a_method_states_is_listed(method):
    stated = yaml.safe_load((ROOT / f"methods/{method}.yaml").read_text(encoding="utf-8"))
    assert stated.keys() - {"context", "rollout", "clusters", "bank", "update", "schedule", "variants"} == set()


def test_sources_by_hand():
    assert source("slea-rl", "update.loss.clip_low", 0.2) == "paper, section 4.1"
    assert source("slea-rl", "bank.admission.ties", "replace") == "this project; the paper has refuse (section 3.4)"
    assert source("coevo-rl", "update.loss.aggregation", "token-mean") == "this project"
