"""Retrieval for tasks and observations: results, number of look-ups, and metrics."""

from dataclasses import replace

import pytest
from support.batches import episode, task, turn
from support.entries import entry

from coevo.configs.bank.retrieval_config import Bm25Config, ClusterRetrievalConfig, TfidfConfig, TwoPhaseConfig
from coevo.memory.retrieval.index import Index
from coevo.records.draws import key
from coevo.tasks.iteration.batch import retrieval_metrics, retrieval_rates
from coevo.tasks.play.retrieve import NOTHING, Given, Lacking, Retrieved, is_shown, recall, sees, with_lesson_scores

MUG, FORK, TASK = (entry(text, scope="s") for text in ("mug in safe", "fork in chest", "do 1"))
ASKED = task(1)


def seen(config):
    return Retrieved(Index([MUG, FORK, TASK], config), key("test"))


def texts(entries):
    return [each.strategy for each in entries]


def test_per_task_per_step_and_both():
    found = {
        per: (texts(it.of_task(ASKED)), texts(it.of_step(ASKED, "a mug")))
        for per in ("task", "step", "both")
        for it in [seen(TfidfConfig(per=per))]
    }
    assert found == {"task": (["do 1"], []), "step": ([], ["mug in safe"]), "both": (["do 1"], ["mug in safe"])}


def test_a_step_may_ask_with_the_instruction_too():
    config = TfidfConfig(per="step", step_query="instruction+observation")
    assert set(texts(seen(config).of_step(ASKED, "a mug"))) == {"do 1", "mug in safe"}


def test_a_question_is_asked_once():
    it = seen(TfidfConfig(per="both"))
    for _ in range(3):
        it.of_task(ASKED)
        it.of_step(ASKED, "a mug")
        it.of_step(task(2), "a mug")
    assert (len(it.answers["task"]), len(it.answers["step"])) == (1, 1)
    assert retrieval_rates(it)["bank/retrieval/seconds"] == it.seconds > 0


def test_nothing_and_what_is_given():
    assert recall(None, key(1)) is NOTHING
    assert NOTHING.of_task(ASKED) == NOTHING.of_step(ASKED, "a mug") == ()
    given = Given({ASKED.id: (MUG,)})
    assert (given.of_task(ASKED), given.of_step(ASKED, "x"), given.of_task(task(2))) == ((MUG,), (), ())


@pytest.mark.parametrize("per", ["task", "step", "both"])
def test_lessons_of_a_turn_have_the_scores_of_their_search(per):
    it = seen(TfidfConfig(per=per))
    found = [*it.of_task(ASKED), *it.of_step(ASKED, "a mug")]
    played = [
        replace(
            episode(1),
            task=ASKED,
            turns=(turn(observation="a mug", retrieved=tuple(each.id for each in (*found, FORK))),),
        )
    ]
    (scored,) = with_lesson_scores(played, it)
    hits = [hit for query in ("do 1", "a mug") for hit in it.index.search(query, ASKED.scope)]
    wanted = {hit.entry.id: hit.score for hit in hits if hit.entry in found}
    assert dict(zip(scored.turns[0].retrieved, scored.turns[0].lesson_scores, strict=True)) == {
        **wanted, FORK.id: None
    }  # fmt: skip
    assert with_lesson_scores(played, NOTHING) == played == [scored]


@pytest.mark.parametrize(("iterations", "entries", "shown"), [(4, 11, False), (5, 10, False), (5, 11, True)])
def test_the_gates(iterations, entries, shown):
    config = ClusterRetrievalConfig(type="cluster", warmup=5, min_entries=10)
    assert is_shown(config, iterations, entries) == shown


@pytest.mark.parametrize(("share", "told"), [(1.0, 8), (0.5, 4), (0.3, 2), (0.0, 0)])
def test_the_first_rollouts_of_a_group_see_the_bank(share, told):
    assert [sees(TfidfConfig(share=share), n, 8) for n in range(8)] == [True] * told + [False] * (8 - told)


def metrics(config, it, episodes):
    def size(entries, instruction):
        return sum(len(entry.strategy.split()) + 1 for entry in entries)

    return retrieval_metrics(config, it, episodes, 4, size)


def test_each_choice_leaves_a_figure_of_its_own():
    played = [episode(1, n, (turn(observation="a mug", retrieved=(MUG.id, TASK.id)),)) for n in range(4)]
    figures = {}
    for name, config in {
        "task": TfidfConfig(),
        "step": Bm25Config(type="bm25", per="step"),
        "half": TfidfConfig(share=0.5),
        "gate": TfidfConfig(warmup=1),
        "explore": TwoPhaseConfig(type="two-phase", similarity={"type": "tfidf"}),
        "cluster": ClusterRetrievalConfig(type="cluster"),
    }.items():
        it = seen(config)
        it.of_task(ASKED)
        it.of_step(ASKED, "a mug")
        figures[name] = metrics(config, it, played)
    assert set(figures["task"]) == {"bank/retrieval/tfidf_score", "bank/retrieval/task_hits"}
    assert set(figures["step"]) == {
        "bank/retrieval/bm25_score",
        "bank/retrieval/step_hits",
        "bank/retrieval/step_tokens",
    }
    assert figures["step"]["bank/retrieval/step_tokens"] == 4.0
    lost = replace(episode(1, 4, (turn(observation="a mug", retrieved=()),) * 4), lost="exception: gone")
    it = seen(Bm25Config(type="bm25", per="step"))
    assert metrics(Bm25Config(type="bm25", per="step"), it, [*played, lost])["bank/retrieval/step_tokens"] == 4.0
    assert (figures["step"]["bank/retrieval/step_hits"], figures["task"]["bank/retrieval/task_hits"]) == (1.0, 1.0)
    assert figures["half"]["bank/retrieval/conditioned_share"] == 0.5
    assert (
        figures["half"]["bank/retrieval/conditioned_success"],
        figures["half"]["bank/retrieval/unconditioned_success"],
    ) == (0.5, 0.5)
    assert figures["gate"]["bank/retrieval/enabled"] == 1.0
    assert figures["explore"]["bank/retrieval/explored"] == 0.0
    assert figures["cluster"]["bank/retrieval/fallbacks"] == 1.0


def test_entries_that_the_prompt_leaves_out_are_counted():
    config = TfidfConfig(per="both", share=0.5)
    shown, cut, bare = (
        episode(1, n, (turn(observation="a mug", retrieved=ids),) * 2) for n, ids in ((0, (MUG.id,)), (1, ()), (2, ()))
    )
    figures = metrics(config, seen(config), [shown, cut, bare])  # "do 1" and "mug in safe", in two of the episodes
    assert figures["bank/retrieval/left_out"] == (1 + 1 + 2 + 2) / 4
    whole = episode(1, 0, (turn(observation="a mug", retrieved=(MUG.id, TASK.id)),))
    assert "bank/retrieval/left_out" not in metrics(config, seen(config), [whole])


def test_the_name_of_the_score_is_there_before_anything_is_found():
    for it in (NOTHING, Retrieved(Index([], TfidfConfig()), key(1))):
        assert metrics(TfidfConfig(), it, [episode()]) == {
            "bank/retrieval/tfidf_score": 0.0,
            "bank/retrieval/task_hits": 0.0,
        }


def test_counts_begin_with_the_first_question():
    config = ClusterRetrievalConfig(type="cluster")
    index = Index([MUG], config)
    for _ in range(2):
        it = Retrieved(index, key(1))
        it.of_step(ASKED, "a mug")
        assert it.tally() == {"fallbacks": 1}


SCOPES = ("lotus", "maple", "willow", "harbour", "summit", "orchid", "cedar", "juniper")


@pytest.mark.parametrize("name", SCOPES)
@pytest.mark.parametrize(
    "misspelt",
    [
        lambda name: name[1:],
        lambda name: name[:-1],
        lambda name: name + name[-1],
        lambda name: name[0] + name[2] + name[1] + name[3:],
        lambda name: name.capitalize(),
        lambda name: f" {name}",
        lambda name: f"{name} ",
        lambda name: f"{name}s",
        lambda name: name.replace(name[2], "x"),
    ],
)
def test_a_misspelt_scope_is_named_with_the_nearest(name, misspelt):
    index = Index([entry("mug in safe", scope=scope) for scope in SCOPES], TfidfConfig())
    lacking, wrong = Lacking(index), misspelt(name)
    asked = replace(task(1), scope=wrong, instruction="mug")
    assert lacking.reason(asked, False) == f"the bank has no lesson of scope {wrong!r}. Did you mean {name!r}?"
    assert lacking.reason(replace(asked, scope=name), True) == ""


def test_why_no_lesson_is_found():
    asked = replace(task(1), scope="s", instruction="xyzzy")
    some = Lacking(Index([MUG, FORK], TfidfConfig()))
    assert some.reason(asked, False) == "no lesson of scope 's' matches the instruction or the observation"
    assert some.reason(replace(asked, scope=""), False) == "no scope is given, and lessons belong to one, such as 's'"
    assert some.reason(replace(asked, scope="qqqqq"), False) == "the bank has no lesson of scope 'qqqqq'."
    assert Lacking(Index([], TfidfConfig())).reason(asked, False) == "the bank has no lesson"
    general = Lacking(Index([entry("mug in safe")], TfidfConfig()))
    assert general.reason(replace(asked, scope="anywhere"), True) == ""
    unscoped = Lacking(Index([MUG], TfidfConfig(scoped=False)))
    assert unscoped.reason(replace(asked, scope="t"), True) == ""
    mixed = Lacking(Index([MUG, entry("fork in chest")], TfidfConfig()))
    assert mixed.reason(replace(asked, scope="t"), True) == "the bank has no lesson of scope 't'."
