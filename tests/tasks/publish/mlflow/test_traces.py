"""Episodes as MLflow's traces, on a real database."""

from dataclasses import replace

import pytest
from support.batches import batch, entry, episode, turn
from support.publications import publication

from coevo.models.policy.decoder import Decoder
from coevo.models.policy.tokenizers import word_tokenizer
from coevo.records.failure_reasons import failure_reason
from coevo.tasks.pending_revision import HeldOutEpisode
from coevo.tasks.publish.mlflow.traces import outcome, sample, spans_of
from coevo.tasks.publish.mlflow.tracker import Tracker
from coevo.tasks.publish.mlflow.tracking_store import tracking_store


def test_a_sample_has_two_successes_and_one_of_each_kind_of_failure():
    failed = replace(episode(8), success=False)
    strange = replace(episode(9, turns=(turn(valid=False),)), success=False)
    cut = replace(episode(7), truncated=True)
    played = [as_training(one) for one in (*batch(4, 4), failed, strange, cut)]
    chosen = sample([*played, *(replace(one, panel="seen") for one in played)])
    kinds = ["invalid action", "out of turns", "success", "success", "wrong end"]
    assert [(one.panel, outcome(one)) for one in chosen] == [
        (panel, kind) for panel in ("seen", "training") for kind in kinds
    ]
    assert sample([]) == []


def as_training(one):
    return HeldOutEpisode("training", one, failure_reason(one) or "", "")


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Contents of MLflow after a revision was published twice, by two processes' trackers."""
    from mlflow import MlflowClient

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLFLOW_TRACKING_URI", raising=False)
        store = tracking_store(tmp_path_factory.mktemp("traces"))
    known = replace(entry("mug in safe"), id="e1")
    played = (turn(observation="door", reward=0.0), turn(observation="mug", action="take mug", reward=1.0))
    lost = replace(episode(1, 0), success=False, lost="crash: it ended")
    more = replace(episode(2, 1), following=(1,), success=False)
    tested = HeldOutEpisode("seen-houses", replace(lost, lost=""), "wrong end", "not followed")
    timed = tuple(replace(each, seconds=0.75, drawing=0.25) for each in played)
    right = HeldOutEpisode("seen-houses", episode(0, 1, timed), "", "")
    made = publication(1, [known])
    made.manifest.observed["metrics"] |= {"cost/seconds/evaluate": 9.5}
    made = replace(made, episodes=[episode(0, 1, played), episode(0, 0), lost, more], held_out=[tested, right])
    for _ in range(2):
        Tracker(store, "traced", "demo-1", "abc", lambda ids: f"prompt of {len(ids)}").publish(made)
    client = MlflowClient(store.uri)
    experiment = client.get_experiment_by_name("traced").experiment_id
    (run,) = client.search_runs([experiment])
    logged = client.search_traces(run_id=run.info.run_id, locations=[experiment])
    return {(trace.info.tags["coevo.evaluation_set"], trace.info.tags["coevo.outcome"]): trace for trace in logged}


def test_an_episode_is_one_trace_of_its_run_however_often_it_is_published(traces):
    training = {("training", name) for name in ("success", "wrong end", "environment error", "continues")}
    assert set(traces) == training | {("seen-houses", "success"), ("seen-houses", "wrong end")}
    info = traces["training", "success"].info
    assert info.request_preview == "do 0"
    assert info.tags["coevo.episode"] == "1/rollout/" + episode(0, 1).task.id + "/1"
    assert info.tags["coevo.revision"] == "1"


def test_each_turn_has_what_was_retrieved_what_was_generated_and_what_came_of_it(traces):
    spans = traces["training", "success"].data.spans
    assert [span.name for span in spans] == [
        "episode",
        *(f"{part} {turn}" for turn in (1, 2) for part in ("retrieve", "generate", "step")),
    ]
    root, retrieved, generated, stepped = spans[0], *spans[4:]
    assert {span.parent_id for span in spans[1:]} == {root.span_id}
    assert root.outputs == {"outcome": "success", "reward": 1.0, "shaped reward": 1.0}
    assert retrieved.inputs == "mug"
    assert retrieved.outputs[0] == {"page_content": "mug in safe", "metadata": {"entry": "e1"}}
    assert (generated.inputs, generated.outputs) == (f"prompt of {len(turn().prompt_ids)}", "go x")
    assert (stepped.inputs, stepped.outputs) == ("take mug", {"feedback": "ok", "reward": 1.0, "valid": True})


def test_a_turn_lasts_as_long_as_was_measured(traces):
    trace = traces["seen-houses", "success"]
    lasted = {span.name: span.end_time_ns - span.start_time_ns for span in trace.data.spans}
    wanted = {f"{part} {turn}": spent for turn in (1, 2) for part, spent in (("generate", 0.25), ("step", 0.5))}
    assert lasted == {name: round(wanted.get(name, 0.0) * 1e9) for name in lasted} | {"episode": 1_500_000_000}
    assert trace.info.execution_duration == 1500


def test_no_span_has_a_duration_where_nothing_measured_one(traces):
    for trace in (each for (panel, _), each in traces.items() if panel == "training"):
        assert not trace.info.execution_duration
        assert all(span.end_time_ns == span.start_time_ns for span in trace.data.spans)
        starts = [span.start_time_ns for span in trace.data.spans]
        assert starts == sorted(starts)


def test_what_ended_without_success_is_an_error(traces):
    for (_, told), trace in traces.items():
        assert trace.info.state.value == ("OK" if told in ("success", "continues") else "ERROR")
    assert traces["seen-houses", "wrong end"].data.spans[0].status.description == "wrong end"


def test_a_trace_is_assessed_by_its_success_and_the_reason_of_its_failure_once(traces):
    told = {
        name: sorted((each.name, each.value, each.rationale) for each in trace.info.assessments)
        for name, trace in traces.items()
    }
    assert told["seen-houses", "success"] == [("success", True, None)]
    assert told["seen-houses", "wrong end"] == [
        ("reason", "wrong end", "lessons: not followed"),
        ("success", False, None),
    ]
    assert told["training", "environment error"] == [("reason", "environment error", None), ("success", False, None)]
    assert told["training", "continues"] == []


def test_the_measured_seconds_are_those_of_the_batch(traces):
    told = {(panel, trace.info.tags["coevo.batch_seconds"]) for (panel, _), trace in traces.items()}
    assert told >= {("seen-houses", "9.500")}


def test_tokens_are_those_of_prompts_and_answers(traces):
    given, drawn = len(turn().prompt_ids), len(turn().completion.token_ids)
    used = {"input_tokens": given, "output_tokens": drawn, "total_tokens": given + drawn}
    trace = traces["training", "success"]
    asked = [span for span in trace.data.spans if span.span_type == "LLM"]
    assert [span.get_attribute("mlflow.chat.tokenUsage") for span in asked] == [used, used]
    assert trace.info.token_usage == {name: 2 * tokens for name, tokens in used.items()}


def test_without_its_tokenizer_a_prompt_is_said_to_be_missing(tmp_path):
    decode = Decoder(tmp_path)
    told = spans_of("tr-1", as_training(episode(0, 1)), {}, 0, decode)
    given = [values for values in told if values["name"] == "generate 1"]
    assert "not available" in given[0]["attributes"]["mlflow.spanInputs"]


@pytest.mark.parametrize("content", ["", "{}", "[", '{"model": 1}', "\x00", "null"])
def test_a_malformed_tokenizer_decodes_nothing(tmp_path, content):
    (tmp_path / "tokenizer.json").write_text(content)
    assert Decoder(tmp_path)([1, 2]) is None


def test_a_prompt_is_decoded_with_its_special_tokens(tmp_path):
    tokenizer = word_tokenizer(["mug", "safe"])
    tokenizer.save_pretrained(tmp_path)
    decode = Decoder(tmp_path)
    assert decode(tokenizer.convert_tokens_to_ids(["user", "mug", "<eos>"])) == "user mug <eos>"
    assert decode([-1]) is None
