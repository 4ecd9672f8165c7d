"""Cards of lessons, pages of turns and groups, and the distribution of advantages, against what the stores hold."""

import re
from dataclasses import replace

import pytest
from starlette.testclient import TestClient
from support import small_run
from support.watched import TOKEN, DrawnRun, indexed

from coevo.flows.cli.app import main
from coevo.flows.history.revision_reference import reading
from coevo.flows.history.stored_episodes import EpisodeFilter, episode_rows
from coevo.flows.watch.watch_app import WatchSite, watch_app
from coevo.lineage.workspace import Workspace
from coevo.memory.bank.change import BankChange
from coevo.tasks.publish.turn_figures import write_turn_figures

HELPS, HARMS = (1.0, 0.0, 1.0, 1.0), (-1.0, 0.0, -1.0, -1.0)
STEPS = "heat the mug with the {} before you put it down"


def page_of(workspace, path):
    answer = TestClient(watch_app(WatchSite(workspace, TOKEN)), base_url="http://127.0.0.1").get(path)
    assert answer.status_code == 200, answer.text
    return answer.text


def part(page, name, tag):
    found = re.search(rf'id="{name}"[^>]*>(.*?)</{tag}>', page, re.DOTALL)
    return None if found is None else " ".join(re.sub(r"<[^>]*>", " ", found[1]).split())


@pytest.mark.parametrize(
    ("other", "gains", "contradicts"),
    [
        (small_run.entry(STEPS.format("stove"), "heat mug", "go"), HARMS, True),
        (small_run.entry(STEPS.format("stove"), "heat mug", "go"), HELPS, False),
        (small_run.entry(STEPS.format("stove"), "cool mug", "go"), HARMS, False),
        (small_run.entry("look into each drawer first", "heat mug", "go"), HARMS, False),
        (replace(small_run.entry(STEPS.format("stove"), "heat mug", "go"), scope="hall"), HARMS, False),
    ],
    ids=["opposite", "same sign", "other condition", "other text", "other scope"],
)
def test_a_card_names_entries_that_contradict_it(tmp_path, other, gains, contradicts):
    run = DrawnRun(tmp_path, 0)
    one = small_run.entry(STEPS.format("microwave"), "heat mug", "go")
    judged = (small_run.judged(1, (one,), HELPS), small_run.judged(1, (other,), gains))
    run.commit(BankChange(entries=(one, other), judged=judged), [])
    indexed(run.paths)
    said = part(page_of(run.workspace, f"/runs/drawn/lessons/{one.id}"), "contradicting", "ul")
    assert (said is not None) == contradicts
    if contradicts:
        assert said.startswith(f"{other.id} {other.strategy} similarity 0.")
        assert said.endswith("gain -0.750 against 0.750")


@pytest.mark.parametrize(
    ("readers", "wanted"), [((0, 1, 2, 3), "–, –"), ((0, 2), "0.500, 0.500"), ((0, 1), "1.000, 0.000")]
)
def test_a_card_has_the_success_with_and_without(tmp_path, readers, wanted):
    run = DrawnRun(tmp_path, 0)
    lesson = small_run.entry("lotus mug in safe", "mug", "go")
    told, bare = small_run.episodes(1, (lesson,)), small_run.episodes(1)
    run.commit(BankChange(entries=(lesson,)), [(told if at in readers else bare)[at] for at in range(4)])
    indexed(run.paths)
    assert part(page_of(run.workspace, f"/runs/drawn/lessons/{lesson.id}"), "beside", "dd") == wanted


def test_uses_lead_to_their_episodes_and_entries_that_nobody_read_can_be_shown_alone(tmp_path):
    run = DrawnRun(tmp_path, 0)
    read, unread = small_run.entry("lotus mug in safe", "mug", "go"), small_run.entry("lotus cup in bin", "cup", "go")
    run.commit(BankChange(entries=(read, unread)), small_run.episodes(1, (read,)))
    run.commit(BankChange(), small_run.episodes(2))
    indexed(run.paths)
    card = page_of(run.workspace, f"/runs/drawn/lessons/{read.id}")
    (uses,) = re.findall(rf'href="([^"]*lesson={read.id})"', card)
    assert "4 episodes of 1 tasks" in page_of(run.workspace, "/" + uses.replace("&amp;", "&").lstrip("./"))
    shown = page_of(run.workspace, "/runs/drawn/bank?unread=1")
    assert part(shown, "total", "p").startswith("1 entries that no training episode has read;")
    assert unread.id in shown and f"/lessons/{read.id}" not in shown.split('id="total"')[1]


def test_a_turn_has_the_seconds_and_scores_that_were_recorded(tmp_path):
    paths = indexed(small_run.build(tmp_path))
    address = "/runs/first/r/3/training/0"
    page = page_of(Workspace(tmp_path), address)
    assert (part(page, "seconds", "dd"), "score " in page, " s, reward" in page) == ("unknown", False, False)
    assert "coevo watch first" in part(page, "unmeasured", "p")
    seen = (small_run.MUG, small_run.MICROWAVE)
    played = [
        replace(each, turns=tuple(replace(turn, seconds=0.5, lesson_scores=(0.71, None)) for turn in each.turns))
        for each in small_run.episodes(3, seen)
    ]
    write_turn_figures(paths, 3, played)
    page = page_of(Workspace(tmp_path), address)
    assert (part(page, "seconds", "dd"), part(page, "unmeasured", "p")) == ("1.000", None)
    assert page.count("score 0.710") == page.count("4 tokens, 0.500 s, reward") == 2
    assert page.count("score ") == 2


def test_a_pulled_episode_has_its_tokens_and_says_that_its_seconds_are_elsewhere(tmp_path):
    source, remote, target = tmp_path / "source", tmp_path / "remote", tmp_path / "target"
    paths = small_run.build(source)
    write_turn_figures(paths, 3, [timed(each) for each in small_run.episodes(3, (small_run.MUG, small_run.MICROWAVE))])
    for line in (("push", remote, "--workspace", source), ("pull", remote, "first", "--workspace", target)):
        with pytest.raises(SystemExit, match="0"):
            main([str(word) for word in line])
    pages = []
    for root in (source, target):
        indexed(Workspace(root).existing("first"))
        pages.append(page_of(Workspace(root), "/runs/first/r/3/training/0"))
    here, there = pages
    tokens = r"<p class=.soft.>(\d+) tokens, "
    assert re.findall(tokens, there) == re.findall(tokens, here) == ["4", "4"]
    assert (part(here, "seconds", "dd"), part(here, "unmeasured", "p")) == ("1.000", None)
    assert (part(there, "seconds", "dd"), there.count("4 tokens, seconds unknown, reward")) == ("unknown", 2)
    assert "coevo watch first shows them there" in part(there, "unmeasured", "p")


def timed(episode):
    """An episode whose turns took half a second each."""
    return replace(episode, turns=tuple(replace(turn, seconds=0.5) for turn in episode.turns))


def test_a_failure_of_training_has_the_part_of_the_lessons_that_was_recorded(tmp_path):
    run = DrawnRun(tmp_path, 0)
    played = small_run.episodes(1)
    noted = [replace(played[2], lesson_use="not retrieved"), *played[:2], replace(played[3], lesson_use="forged")]
    write_turn_figures(run.paths, 1, noted)
    run.commit(BankChange(), played)
    indexed(run.paths)
    page = page_of(run.workspace, "/runs/drawn/episodes?set=training&outcome=failed")
    assert page.count('<span class="soft">not retrieved</span>') == page.count('<span class="soft">unknown</span>') == 1
    with reading("drawn", run.workspace) as opened:
        uses = [row["lessons"] for row in episode_rows(opened, EpisodeFilter(training=True))]
    assert uses == ["", "", "not retrieved", "unknown"]


def test_a_group_stands_apart_by_what_its_prompts_held(tmp_path):
    run = DrawnRun(tmp_path, 0)
    lesson = small_run.entry("lotus mug in safe", "mug", "go")
    told, bare = small_run.episodes(1, (lesson,)), small_run.episodes(1)
    run.commit(BankChange(entries=(lesson,)), [*told[:3], bare[3]])
    indexed(run.paths)
    page = page_of(run.workspace, f"/runs/drawn/r/1/tasks/{small_run.TASK.id}")
    titles = re.findall(r"<h3>([^<]*)</h3>", page)
    assert titles == ["With lessons in the prompt: 2 of 3 solved", "Without: 0 of 1 solved"]
    assert page.count("<article>") == 4


def test_the_distribution_of_advantages_is_that_of_the_manifest(tmp_path):
    run = DrawnRun(tmp_path, 0)
    counts = {-0.5: 3.0, 0.0: 5.0, 0.5: 4.0}
    run.metrics = {f"policy/advantage_histogram/from_{edge:.1f}": count for edge, count in counts.items()}
    run.metrics["policy/advantage_histogram/from_<b>"] = 1.0
    run.commit(BankChange(), [])
    indexed(run.paths)
    found = part(page_of(run.workspace, "/runs/drawn"), "advantages", "table")
    assert found.endswith("advantage episodes share from -0.5 3 from 0.0 5 from 0.5 4")
    run.metrics["policy/advantage/zero_variance_share"] = 0.25  # of twelve; only GRPO and its like give them 0
    run.commit(BankChange(), [])
    indexed(run.paths)
    found = part(page_of(run.workspace, "/runs/drawn"), "advantages", "table")
    assert found.endswith("from -0.5 3 exactly 0, groups without variance 3 above 0 2 from 0.5 4")
