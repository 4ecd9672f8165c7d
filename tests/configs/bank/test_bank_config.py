"""Parts of the bank that do not go together are refused, with reason and remedy."""

import pytest
from pydantic import ValidationError
from support.refusal import refusal

from coevo.configs.bank.bank_config import BankConfig


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (
            ["bank.writer.type=contrast"],
            "quote-contrast proposes none: set bank.writer={type: quote-editor}",
        ),
        (
            ["bank.admission=null", "bank.admission={type: replay}"],
            "them: set bank.admission={type: edits}",
        ),
        (["bank.utility={}"], "scores by votes, and utility by episodes: set bank.utility=null"),
        (["bank.retirement={}"], "removes entries by their scores: set bank.retirement=null"),
        (["bank.admission.initial=0.25"], "initial=0.25 is below threshold=0.5"),
    ],
)
def test_what_does_not_go_with_edits_is_refused(overrides, says):
    assert says in refusal("homerules-jerp", overrides)


def test_an_editor_without_edits_is_refused_and_both_together_are_not():
    with pytest.raises(ValidationError, match="cannot apply them"):
        BankConfig.model_validate({"writer": {"type": "quote-editor"}})
    made = BankConfig.model_validate({"writer": {"type": "quote-editor"}, "admission": {"type": "edits"}})
    assert (made.writer.type, made.admission.capacity) == ("quote-editor", 32)
