"""Failed training episodes say what the lessons had to do with it, without a search that the run did not make."""

from dataclasses import replace

import pytest
from support.batches import entry, episode, turn

from coevo.configs.bank.retrieval_config import TfidfConfig
from coevo.memory.retrieval.index import Index
from coevo.records.draws import key
from coevo.tasks.play.lesson_use import with_lesson_use
from coevo.tasks.play.retrieve import NOTHING, recall

SAFE = entry("s mug in safe")
NEEDED = ("s mug in safe",)


def played(read, success=False):
    failed = replace(episode(turns=(turn(retrieved=read),)), success=success)
    return replace(failed, task=replace(failed.task, instruction="mug safe"))


@pytest.mark.parametrize(
    ("asked", "read", "needed", "use"),
    [
        (True, (SAFE.id,), NEEDED, "not followed"),
        (True, (), NEEDED, "left out"),
        (False, (), NEEDED, "not retrieved"),
        (True, (SAFE.id,), ("s pan in chest",), "no fitting lesson"),
        (True, (SAFE.id,), None, "unknown"),
        (True, (SAFE.id, "candidate"), NEEDED, "unknown"),
    ],
)
def test_the_part_of_the_lessons_in_a_failure_of_training(asked, read, needed, use):
    seen = recall(Index([SAFE], TfidfConfig(k=1, per="task")), key(1))
    if asked:
        seen.of_task(played(read).task)
    before = {what: dict(answers) for what, answers in seen.answers.items()}
    failed, solved = with_lesson_use([played(read), played(read, True)], seen, lambda task: needed, False, True)
    assert (failed.lesson_use, solved.lesson_use) == (use, "")
    assert failed == played(read)  # it is no part of the record
    assert seen.answers == before


@pytest.mark.parametrize(("has_lessons", "use"), [(True, "unknown"), (False, "no bank")])
def test_without_a_retrieval_the_bank_decides(has_lessons, use):
    (failed,) = with_lesson_use([played(())], NOTHING, lambda task: NEEDED, False, has_lessons)
    assert failed.lesson_use == use
