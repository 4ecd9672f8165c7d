"""Part of the lessons in a failed episode."""

from dataclasses import replace

import pytest
from support.batches import entry, episode, turn
from support.worker import environment

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.memory.retrieval.index import Index
from coevo.records.draws import key
from coevo.records.failure_reasons import LessonUse
from coevo.tasks.play.lesson_use import lesson_use
from coevo.tasks.play.retrieve import NOTHING, recall

SAFE, OTHER, ELSEWHERE = entry("s mug in safe"), entry("s mug in drawer"), entry("s mug in safe", scope="t", id="e9")
NEEDED = ("s mug in safe",)


def use(entries, read=(), needed=NEEDED, reworded=False, **fields):
    """Part of the lessons in an episode with the task ``do 0`` of scope ``s`` and one turn."""
    index = Index(entries, TfidfConfig(k=1, per="task")) if entries else None
    seen = recall(index, key(1))
    failed = replace(episode(turns=(turn(retrieved=read),)), **fields)
    task = replace(failed.task, instruction=fields.get("instruction", "mug safe"))
    return lesson_use(replace(failed, task=task), needed, index, seen, reworded)


CASES = {
    "no bank": ({"entries": []}, "no fitting lesson"),
    "another fact": ({"entries": [OTHER]}, "no fitting lesson"),
    "the fact of another scope": ({"entries": [ELSEWHERE]}, "no fitting lesson"),
    "one of two facts": ({"entries": [SAFE], "needed": (*NEEDED, "s pan in chest")}, "no fitting lesson"),
    "found and not shown": ({"entries": [SAFE]}, "left out"),
    "read": ({"entries": [SAFE], "read": (SAFE.id,)}, "not followed"),
    "the environment cannot tell": ({"entries": [SAFE], "needed": None}, "unknown"),
    "a model's words": ({"entries": [entry("s the safe hides it")], "reworded": True}, "unknown"),
    "a model, and nothing of this scope": ({"entries": [ELSEWHERE], "reworded": True}, "no fitting lesson"),
    "the environment failed": ({"entries": [SAFE], "lost": "crash: gone"}, "unknown"),
}


@pytest.mark.parametrize(("given", "expected"), CASES.values(), ids=CASES)
def test_the_part_of_the_lessons(given, expected):
    assert use(**given) == expected


def test_a_fitting_lesson_that_no_search_finds_was_not_retrieved():
    better = entry("mug safe mug safe")
    assert use([SAFE, better], read=(better.id,)) == LessonUse.NOT_RETRIEVED


def test_what_a_household_needs_is_what_its_true_bank_says():
    env = environment()
    index = Index(env.panel_bank("other-houses"), TfidfConfig())
    for task in env.panel("other-houses", 16).tasks:
        failed = replace(episode(turns=(turn(retrieved=()),)), task=task)
        assert lesson_use(failed, env.needed(task), index, NOTHING, False) == LessonUse.NOT_RETRIEVED
        assert lesson_use(failed, (*env.needed(task), "nobody knows"), index, NOTHING, False) == LessonUse.NONE_FITS
