"""Vendi scores of batches and panels, in the places of the loop that measure them."""

from support.sessions import batch, opened

from coevo.configs.load.load import load_recipe
from coevo.tasks.steps.evaluate import evaluate

SMALL = ("warmstart=null", "iterations=3", "rollout.tasks=2", "rollout.max_turns=2", "evaluation.tasks=4")


def test_rollouts_and_panels_are_scored_with_the_encoder_of_the_run(tmp_path):
    scores = []
    for number, settings in enumerate(((), ("evaluation.encoder=all-MiniLM-L6-v2",))):
        config = load_recipe("homerules-grpo", [*SMALL, *settings])
        with opened(tmp_path / str(number), config) as session:
            batch(session)
            found = session.draft.metrics | evaluate(session).metrics
            assert {name.split("/")[2] for name in found if "/vendi/" in name} >= {"train", "seen-houses"}
            scores.append({name: value for name, value in found.items() if "/vendi/" in name})
    words, vectors = scores
    assert words.keys() == vectors.keys()
    assert words != vectors
