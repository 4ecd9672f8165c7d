"""The presets with appended lessons run in this process, and each part leaves the figures that only it gives."""

import pytest
from support.sessions import iterate, opened
from support.worker import expert_worker

from coevo.configs.load.load import load_recipe
from coevo.records.metric_names import GROUPS

SMALL = ["warmstart=null", "rollout.tasks=4", "evaluation.tasks=16", "evaluation.every=2", "evaluation.final_panels=[]"]
FIGURES = {
    "retroagent": {
        "bank/writer/pairwise",
        "bank/admission/added",
        "bank/retrieval/simutil_ucb_score",
        "bank/utility",
        "policy/reward/intrinsic",
    },
    "reflexion-style": {
        "bank/writer/accuracy",
        "bank/admission/dropped",
        "bank/retrieval/utility_score",
        "bank/discovery/seen-houses/3",
    },
    "memrl-style": {"bank/writer/potential_error", "bank/admission/merged", "bank/retrieval/explored", "bank/utility"},
    "d2skill-style": {
        "bank/writer/contrast_lessons",
        "bank/admission/added",
        "bank/retrieval/simutil_ucb_score",
        "bank/retrieval/unconditioned_success",
        "bank/utility",
    },
    "skillrl-style": {
        "bank/writer/failing_kinds",
        "bank/writer/general_skills",
        "bank/admission/added",
        "bank/retrieval/tfidf_score",
    },
}


@pytest.mark.parametrize("method", FIGURES)
def test_two_iterations(tmp_path, method):
    config = load_recipe(f"homerules-{method}", SMALL)
    with opened(tmp_path, config, played=expert_worker()) as session:
        hashes = [session.stores.bank.hashes()["entries"]]
        for _ in range(2):
            metrics = iterate(session)
            hashes.append(session.stores.bank.hashes()["entries"])
        assert len(set(hashes)) == 3
        assert metrics.keys() >= FIGURES[method]
        head = session.stores.lineage.history.head()
        assert {name.partition("/")[0] for name in (*head.state["metrics"], *head.observed["metrics"])} <= {*GROUPS}
        assert metrics["bank/admission/added"] == metrics["bank/admitted"] > 0
        kept = {entry.split for entry in session.stores.bank.entries()}
        assert kept == {"train"}


def test_only_the_last_reflections_on_a_task_are_kept(tmp_path):
    config = load_recipe("homerules-reflexion-style", [*SMALL, "rollout.group_size=8", "bank.admission.per_key=1"])
    with opened(tmp_path, config, played=expert_worker()) as session:
        tasks = session.parts.env.sample(4, session.key("sample"))
        metrics = iterate(session)
        scopes = [entry.scope for entry in session.bank.entries]
        assert len(scopes) == len(set(scopes)) > 0
        assert metrics["bank/admission/dropped"] > 0
        assert set(scopes) <= {task.id for task in tasks}
