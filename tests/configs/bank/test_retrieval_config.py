"""Kinds of retrieval: what a recipe may ask for, and what is refused with a reason."""

import re
from typing import get_args

import pytest
from support.outside import built_in
from support.refusal import refusal

from coevo.configs.bank.retrieval_config import AnyRetrievalConfig
from coevo.configs.load.load import load_recipe

RECIPE = "homerules-coevo-rl"
KINDS = [get_args(kind.model_fields["type"].annotation)[0] for kind in built_in(AnyRetrievalConfig)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("tfidf", "cluster")])
def test_a_kind_is_one_override_where_the_common_settings_stay(kind):
    settings = [f"bank.retrieval.type={kind}", "bank.retrieval.per=both", "bank.retrieval.share=0.5"]
    retrieval = load_recipe(RECIPE, [*settings, "bank.utility={}"]).bank.retrieval
    assert (retrieval.type, retrieval.k, retrieval.per, retrieval.share) == (kind, 4, "both", 0.5)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["bank.retrieval.type=nearest"], "tfidf.*cluster"),
        (["bank.retrieval.per=never"], "'task', 'step' or 'both'"),
        ([f"bank.retrieval.weights.{name}=0" for name in ("strategy", "condition", "example", "keywords")], "weight 0"),
        (["bank.retrieval.alpha=0.5"], "no such key"),
    ],
)
def test_what_cannot_be_is_refused(settings, reason):
    assert re.search(reason, refusal(RECIPE, settings))
