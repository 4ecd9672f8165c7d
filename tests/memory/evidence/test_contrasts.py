"""Which episodes of a task are compared, and the lessons of each comparison."""

from attempts import SAFE, STOVE, attempt

from coevo.memory.evidence.contrasts import contrasts

ASTRAY = [("at hall hold nothing . seen nothing", "go drawer", "nothing"), *SAFE[1:]]
"""Parts from the others at once."""


def compared(*episodes):
    """Pairs of compared episodes and strategies of the lessons."""
    found = contrasts(episodes, 2)
    return [([e.id for e in each.episodes], [lesson.strategy for lesson in each.lessons]) for each in found]


def test_a_pair_has_the_lessons_of_the_success_from_the_turn_at_which_they_part():
    won = attempt("0", SAFE, success=True)
    astray, late = (attempt(name, turns, success=False) for name, turns in (("1", ASTRAY), ("2", STOVE)))
    assert compared(won, astray, late) == [
        ([won.id, astray.id], ["lotus mug in safe", "lotus heat with microwave"]),
        ([won.id, late.id], ["lotus heat with microwave"]),
    ]


def test_a_task_without_a_failure_gives_all_lessons_and_one_without_a_success_the_last_first():
    won, lost = attempt("0", SAFE, success=True), attempt("1", STOVE, success=False)
    assert compared(won) == [([won.id], ["lotus mug in safe", "lotus heat with microwave"])]
    assert compared(lost) == [([lost.id], ["lotus heat not stove", "lotus mug in safe"])]
