"""Prefect's and MLflow's pages of the sample, from an empty folder, agree with its manifests and bank."""

import json
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect
from support.browser import compared, row
from support.pages import showing
from support.runs import coevo, states

from coevo.flows.api import bank, log
from coevo.flows.history.revision_reference import reading
from coevo.flows.sample import RUN
from coevo.flows.servers.servers import mlflow_pages
from coevo.tasks.publish.mlflow.traces import sample, trace_id
from coevo.tasks.publish.reporter import headline
from coevo.tasks.revision_artifacts import held_out_of

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PREFECT_API_URL", "MLFLOW_TRACKING_URI"):
            patch.delenv(name, raising=False)
        with showing(tmp_path_factory.mktemp("empty")) as pages:
            yield pages


def last(shown, run, name):
    """A figure of the last revision that has it."""
    return log(run, workspace=shown.workspace.root)[name].dropna().iloc[-1]


def test_the_experiment_opens_with_recipe_seed_and_commit(page, shown):
    page.goto(mlflow_pages(shown.workspace.root))
    expect(page.get_by_role("button", name="Success, bank, seed, recipe")).to_be_visible()
    expect(page.get_by_text(RUN, exact=True)).to_be_visible()


def test_two_runs_compare_as_their_manifests_do(page, shown):
    runs, experiments = (json.dumps(ids) for ids in ([shown.runs[RUN], shown.runs["first"]], [shown.experiment]))
    page.goto(f"{shown.enter_mlflow(page)}/#/compare-runs?runs={runs}&experiments={experiments}")
    assert row(page, "seed") == ["0", "4"]
    for name in ("agent/success/seen-houses", "agent/success/train", "bank/size"):
        values = [last(shown, run, name) for run in (RUN, "first")]
        assert compared(page, name) == pytest.approx(values, abs=0.0005)


def test_what_became_of_the_bank_is_a_table(page, shown):
    wanted = [state["revision"] for state in states(shown.workspace.root, RUN) if 0 < admitted(state) < 10][-1]
    before, after = (bank(f"{RUN}@{number}", workspace=shown.workspace.root) for number in (wanted - 1, wanted))
    new = after.loc[after.index.difference(before.index)]
    assert len(new) == admitted(states(shown.workspace.root, RUN)[wanted])
    page.goto(shown.enter_mlflow(page) + shown.of_run(f"/artifacts/bank/changes-r{wanted}.json"))
    rows = page.get_by_role("row").filter(has_text="admitted")
    expect(rows).to_have_count(len(new))
    told = [one.get_by_role("cell").all_inner_texts()[:3] for one in rows.all()]
    assert sorted(told) == sorted(["admitted", name, text] for name, text in new["strategy"].items())


def admitted(state):
    return state["metrics"].get("bank/admitted", 0)


def test_an_episode_is_a_trace_of_what_was_retrieved_generated_and_answered(page, shown):
    with reading(RUN, shown.workspace) as opened:
        played = held_out_of(opened.lineage, opened.manifest.revision, opened.paths.scratch)
        each = next(one for one in sample(played) if one.episode.success and one.episode.turns[0].retrieved)
        episode = each.episode
        known = {entry.id: entry.strategy for entry in opened.bank().entries()}
    page.goto(shown.enter_mlflow(page) + shown.of_trace(trace_id(shown.runs[RUN], each)))
    for number in range(1, len(episode.turns) + 1):
        for part in ("retrieve", "generate", "step"):
            expect(page.get_by_text(f"{part} {number}", exact=True).first).to_be_visible()
    expect(page.get_by_text(f"retrieve {len(episode.turns) + 1}", exact=True)).to_have_count(0)
    for part, texts in told(episode.turns[0], known).items():
        page.get_by_text(f"{part} 1", exact=True).first.click()
        for text in texts:
            expect(page.get_by_text(text, exact=True).first).to_be_visible()


def told(turn, known):
    """Contents of a turn's spans."""
    return {
        "retrieve": [known[name] for name in turn.retrieved],
        "generate": [turn.completion.text],
        "step": [turn.action, turn.feedback],
    }


def test_a_flow_run_has_a_line_per_revision_and_a_list_that_leads_to_their_figures(page, shown):
    shown.enter(page)
    with reading(f"{RUN}@3", shown.workspace) as at:
        manifest = at.manifest
    (flow_run,) = shown.ask("flow_runs/filter", flows={"name": {"any_": ["sample"]}})
    page.goto(f"{shown.prefect}/runs/flow-run/{flow_run['id']}?tab=Logs")
    expect(page.get_by_text(headline(manifest))).to_be_visible()
    page.get_by_text("Artifacts", exact=True).last.click()
    page.get_by_text(f"{RUN}-history").click()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name=headline(manifest), exact=True).click()
    expect(opened.value.get_by_role("heading", name=f"{RUN}@3", exact=True)).to_be_visible()
    for name in ("agent/success/train", "agent/reward/train", "bank/size", "bank/admitted"):
        assert row(opened.value, name) == [f"{manifest.metrics[name]:.4g}"]


def test_a_schedule_is_shown_with_its_next_session(page, shown):
    when = ("--cron", "30 2 * * *", "--timezone", "Europe/Berlin")
    added = coevo("schedule", "add", RUN, *when, workspace=shown.workspace.root)
    assert added.returncode == 0, added.stderr
    (planned,) = json.loads(coevo("schedule", "list", "--json", workspace=shown.workspace.root).stdout)
    due = datetime.fromisoformat(planned["next"]).astimezone(UTC)
    (deployment,) = shown.ask("deployments/filter")
    shown.enter(page)
    page.goto(f"{shown.prefect}/deployments/deployment/{deployment['id']}?tab=Upcoming")
    expect(page.get_by_text("At 02:30 AM every day")).to_be_visible()
    session = page.get_by_text("Scheduled for").first  # in UTC, as the browser is
    expect(session).to_have_text(f"Scheduled for {due:%Y/%m/%d %I:%M:%S %p}")
