"""Writers and admissions: which go together, and what is refused with a reason."""

import re

import pytest
from pydantic import TypeAdapter
from support.refusal import refusal

from coevo.configs.bank.admission_config import (
    AnyAdmissionConfig,
    EditsAdmissionConfig,
    ReplayAdmissionConfig,
    notice,
)
from coevo.configs.bank.bank_config import BankConfig
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


GUARDED = {"type": "replay", "per": "entry", "delta": 0.0, "replays": 64, "confidence": 0.95}
EQ7 = {"type": "replay", "per": "batch", "delta": 0.0, "replays": 8, "confidence": None}


@pytest.mark.parametrize(
    ("recipe", "admission"),
    [
        ("homerules-coevo-rl", GUARDED), ("homerules-experience-only", GUARDED), ("babyai-rules-coevo-rl", GUARDED),
        ("homerules-coevo-rl-qwen3-8b", GUARDED), ("textworld-coevo-rl", GUARDED), ("homerules-coevo-rl-eq7", EQ7),
    ],
)  # fmt: skip
def test_recipes_admit_each_lesson_with_confidence_but_one_that_has_the_papers_rule(recipe, admission):
    assert load_recipe(recipe).bank.admission.model_dump() == admission


@pytest.mark.parametrize("stated", ["{}", "{admission: {type: replay}}", "{admission: {type: replay, delta: 0.0}}"])
def test_a_configuration_that_leaves_fields_out_admits_each_lesson_with_confidence(stated, tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(f"defaults: [envs/homerules, models/scratch]\niterations: 2\nbank: {stated}\n")
    config = load_recipe(str(recipe))
    assert config.bank.admission.model_dump() == GUARDED
    paper = config.bank.model_copy(update={"admission": ReplayAdmissionConfig(**EQ7)})
    assert BankConfig.model_validate(paper.model_dump(mode="json")).admission.model_dump() == EQ7


@pytest.mark.parametrize("replays", [1, 4])
def test_few_replays_are_allowed_with_a_confidence_since_those_of_later_firings_count_too(replays):
    assert ReplayAdmissionConfig(confidence=0.95, replays=replays).replays == replays


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
