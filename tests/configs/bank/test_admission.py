"""Writers and admissions: which go together, and what is refused with a reason."""

import re

import pytest
from pydantic import TypeAdapter, ValidationError
from support.refusal import refusal

from coevo.configs.bank.admission import (
    AnyAdmissionConfig,
    EditsAdmissionConfig,
    ReplayAdmissionConfig,
    least_pairs,
    notice,
)
from coevo.configs.load.load import load_recipe

RECIPE = "homerules-slea-rl"


def composed(path, **bank):
    """The configuration of a recipe that names a writer and an admission."""
    kinds = ", ".join(f"{part}: {settings}" for part, settings in bank.items())
    path.write_text(f"defaults: [envs/homerules, models/scratch]\niterations: 2\nbank: {{{kinds}}}\n")
    return load_recipe(str(path))


@pytest.mark.parametrize("writer", ["quote-contrast", "quote-extremes"])
@pytest.mark.parametrize("admission", ["replay", "score"])
def test_either_admission_takes_either_writer(writer, admission, tmp_path):
    bank = composed(tmp_path / "mine.yaml", writer=f"{{type: {writer}}}", admission=f"{{type: {admission}}}").bank
    assert (bank.writer.type, bank.admission.type) == (writer, admission)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (["bank.admission.type=best"], "'replay', 'score'|tags: .*score"),
        (["bank.admission.ties=keep"], "'replace' or 'refuse'"),
        (["bank.admission.replays=3"], "no such key"),
    ],
)
def test_what_cannot_be_is_refused(settings, reason):
    assert re.search(reason, refusal(RECIPE, settings))


@pytest.mark.parametrize(
    ("confidence", "pairs"),
    [
        (0.51, 2), (0.75, 2), (0.8, 3), (0.875, 3), (0.9, 4), (0.9375, 4), (0.95, 5), (0.99, 7), (1 - 2**-20, 20),
        (1 - 2 ** -(3 + 2e-9), 4), (1 - 2 ** -(3 + 2e-10), 3),
    ],
)  # fmt: skip
def test_a_level_needs_pairs_that_can_reach_it(confidence, pairs):
    assert least_pairs(confidence) == pairs
    assert ReplayAdmissionConfig(confidence=confidence, replays=pairs).replays == pairs
    with pytest.raises(ValidationError, match=f"set replays={pairs} or more, or a lower confidence"):
        ReplayAdmissionConfig(confidence=confidence, replays=pairs - 1)


def test_without_a_level_one_pair_is_enough():
    assert ReplayAdmissionConfig(replays=1).confidence is None


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"type": "replay"}, None),
        ({"type": "replay", "delta": 0.5}, None),
        ({"type": "replay", "delta": -0.5}, "delta=-0.5 lets in what lowers the reward; set delta=0 or more"),
        ({"type": "within-group"}, None),
        ({"type": "within-group", "delta": 0.5}, None),
        ({"type": "within-group", "delta": -0.5}, "delta=-0.5 lets in what lowers the reward; set delta=0 or more"),
        ({"type": "append"}, "to have replay judge them, set bank.admission={type: replay}"),
        ({"type": "score"}, "to have replay judge them, set bank.admission={type: replay}"),
        ({"type": "edits"}, "to have replay judge them, set bank.writer={type: quote-contrast}"),
    ],
)
def test_a_run_says_where_lessons_enter_without_evidence(settings, says):
    found = notice(TypeAdapter(AnyAdmissionConfig).validate_python(settings))
    if says is None:
        assert found is None
    else:
        assert found.startswith(f"bank.admission.type={settings['type']} admits lessons without evidence: ")
        assert says in found


def test_an_entry_that_is_added_stays_at_the_threshold_itself():
    assert EditsAdmissionConfig(type="edits", initial=0.5, threshold=0.5).initial == 0.5
