"""Prefect's pages of a run, on a real server."""

import re
from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from prefect import flow, runtime, tags
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    ArtifactFilter,
    ArtifactFilterFlowRunId,
    ArtifactFilterKey,
    LogFilter,
    LogFilterFlowRunId,
)
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, PREFECT_LOGGING_LEVEL, temporary_settings
from support.batches import entry, episode
from support.publications import publication

from coevo.memory.admission.admission import Decision
from coevo.memory.admission.pending_admission import Pending
from coevo.memory.bank.change import Judged
from coevo.records.entry import Verdict
from coevo.tasks.publish.prefect import (
    AUTOMATIONS,
    FALL,
    IDLE_WRITER,
    FlowPages,
    artifacts_of,
    event_of,
    key_of,
)
from coevo.tasks.publish.proposal_page import proposal_page
from coevo.tasks.publish.revision_page import page

PENDING = Pending(2, Decision((entry("new"),)), (entry("new").id,))


def revision(number, entries=(), before=(), judged=()):
    made = publication(number, entries)
    made.manifest.state["iteration"] = number
    made.manifest.state["metrics"] |= {"agent/success/seen-houses": 0.5, "bank/size": 12}
    return replace(made, before=list(before), judged=judged)


def test_a_page_says_what_became_of_the_bank_and_what_replay_said():
    verdict = Verdict(2, ("a",), False, 0.5, 0.75, -0.25, 0.125, 8, 0.01)
    text = page("demo-1", revision(2, [entry("new")], [entry("old")], [Judged(verdict, (entry("harmful"),))]))
    assert text.startswith("# demo\\-1@2\n\nIteration 2, commit `commit2`.\n")
    assert f"- admitted `{entry('new').id}` new\n- retired `{entry('old').id}` old\n" in text
    assert (
        "| harmful | 0.500 | 0.750 | -0.250 ± 0.125 | needs a difference above 0.01; has -0.250 | held back |" in text
    )
    assert "| agent/success/train | 0.5 |" in text
    bounded = replace(verdict, bound=-0.5)
    wanted = "| needs a lower bound above 0.01; has -0.500 | held back |"
    assert wanted in page("demo-1", revision(2, judged=[Judged(bounded, ())]))
    lacking = page("demo-1", revision(2, judged=[Judged(replace(verdict, difference=0.3), ())]))
    assert "| needs a lower bound above 0.01; has none, since too many pairs were lost | held back |" in lacking
    tried = replace(verdict, seen_share=0.25)
    assert "held back, seen by 25% |" in page("demo-1", revision(2, judged=[Judged(tried, (entry("harmful"),))]))
    assert "- unchanged" in page("demo-1", revision(2, [entry()], [entry()]))


def test_text_of_the_world_is_no_markup():
    hostile = "<script>alert(1)</script> [x](javascript:y) | `z`\n# title"
    text = page("demo-1", revision(2, [entry(hostile)]))
    assert "<script>" not in text
    assert "\n# title" not in text
    assert "\\[x\\]\\(javascript:y\\) \\| \\`z\\` \\# title" in text


def test_keys_are_as_prefect_wants_them():
    assert key_of("My_run.2-", "revision") == "my-run-2-revision"


def test_outside_a_flow_there_are_none():
    with artifacts_of("demo-1", 4, "steps-grpo", print) as artifacts:
        assert artifacts is None


def test_a_proposal_shows_what_would_change_and_what_it_was_drawn_from():
    old, leaves = entry("old"), entry("leaves")
    fresh = replace(entry("new"), sources=(episode(0, 0).id, episode(0, 1).id))
    decision = Decision((fresh, replace(old, strategy="old, but `better`"), replace(leaves, retired=2)))
    played = [episode(0, replica) for replica in range(3)]
    text = proposal_page("demo-1@2", Pending(2, decision, (fresh.id,)), [old, leaves], played)
    assert f"- new `{fresh.id}` new (when: " in text
    assert f"- changed `{old.id}` old, but \\`better\\` (when: " in text
    assert f"- gone `{leaves.id}` leaves (when: " in text
    told = [line for line in text.splitlines() if line.startswith("## Episode")]
    assert [line.rpartition(": ")[2] for line in told] == ["not solved", "solved"]
    assert text.count("| see | go x | ok | ") == 4


@pytest.mark.full
def test_a_run_has_tags_a_line_per_revision_and_their_pages_in_order(prefect_url):
    warnings = []

    @flow(name="pages")
    def run():
        with artifacts_of("demo-1", 4, "steps-grpo", warnings.append) as artifacts:
            for number in range(3):
                artifacts.submit(revision(number), PENDING if number == 2 else None)
        return runtime.flow_run.id

    with temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        with tags("mine"):
            flow_run = UUID(run())
        with get_client(sync_client=True) as client:
            of_run = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=[flow_run]))
            shown = {artifact.key: artifact.data for artifact in client.read_artifacts(artifact_filter=of_run)}
            of_key = ArtifactFilter(key=ArtifactFilterKey(any_=["demo-1-revision"]))
            pages = {str(page.id): page.data for page in client.read_artifacts(artifact_filter=of_key)}
            logs = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run])))
            assert set(client.read_flow_run(flow_run).tags) == {"mine", "demo-1", "steps-grpo"}
    assert not warnings
    assert shown.keys() == {"demo-1-approval", "demo-1-history", "demo-1-progress"}
    assert shown["demo-1-approval"] == proposal_page("demo-1@2", PENDING, [], [])
    assert shown["demo-1-progress"] == 50.0
    said = [f"revision {n}, iteration {n}, training {n / 4:g}, held out 0.5, bank 12" for n in range(3)]
    assert [line.message for line in logs if line.message.startswith("revision")] == said
    listed = re.findall(r"- \[(.*)\]\(\.\./artifact/(\S+)\)\n", shown["demo-1-history"])
    assert [line for line, _ in listed] == said
    assert [pages[link].splitlines()[0] for _, link in listed] == [f"# demo\\-1@{number}" for number in range(3)]


@pytest.mark.full
def test_alarms_are_log_lines_and_events_that_the_servers_automations_react_to(prefect_url):
    lines = ["success in training fell beyond noise: 0.90 to 0.10 since r1", "remedy: a lower update.optimizer.lr"]
    warnings = []

    @flow(name="coevolve")
    def run():
        with artifacts_of("demo-1", 4, "steps-grpo", warnings.append) as artifacts:
            artifacts.submit(replace(revision(2), alarms=lines))
        return runtime.flow_run.id

    with temporary_settings({PREFECT_API_URL: prefect_url, PREFECT_LOGGING_LEVEL: "CRITICAL"}):
        for _ in range(2):
            flow_run = UUID(run())
        with get_client(sync_client=True) as client:
            logs = client.read_logs(LogFilter(flow_run_id=LogFilterFlowRunId(any_=[flow_run])))
            made = {name: client.read_automations_by_name(name) for name in AUTOMATIONS}
    assert not warnings
    assert [line.message for line in logs if line.level == 30 and line.message in lines] == lines
    assert {name: len(found) for name, found in made.items()} == dict.fromkeys(AUTOMATIONS, 1)
    for name, (event, _) in AUTOMATIONS.items():
        assert made[name][0].trigger.expect == {event}


@pytest.mark.parametrize(
    ("alarm", "event"),
    [
        ("the writer has proposed nothing in 5 firings", IDLE_WRITER),
        ("the bank has taken nothing in 5 firings", IDLE_WRITER),
        ("success in seen-houses fell beyond noise: 0.9 to 0.1 since r1", FALL),
        ("remedy: another bank.admission.type", None),
    ],
)
def test_an_alarm_has_the_event_of_its_kind(alarm, event):
    assert event_of(alarm) == event


def test_a_server_that_has_gone_costs_a_warning():
    warnings = []
    artifacts = FlowPages("demo-1", 4, uuid4(), warnings.append)
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api", PREFECT_CLIENT_MAX_RETRIES: 0}):
        for number in (3, 4):
            artifacts.submit(revision(number))
        artifacts.close()
    assert len(warnings) == 1
    assert warnings[0].startswith("Prefect has no artifact of revision 3: ")
