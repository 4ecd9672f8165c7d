"""Lessons of the benchmark are what it takes them for, and every admission decides about them."""

from benchmarks.learning import harmful, trial_gap
from coevo.configs.env import HomeRulesConfig
from coevo.envs.homerules.house_tasks import facts_of
from coevo.envs.registry import make
from coevo.records.draws import key


def test_true_lessons_help_the_expert_and_false_ones_do_not(monkeypatch):
    monkeypatch.setattr(harmful, "PAIRS", 32)
    lessons = list(harmful.drawn(make(HomeRulesConfig()), 12))
    for number, lesson in enumerate(lessons):
        subject = lesson.entry.condition
        assert (lesson.entry.strategy == facts_of(lesson.task).lesson(subject)) == (number % 2 == 0)
    true, false = (sum(lesson.effect for lesson in lessons[start::2]) / 6 for start in (0, 1))
    assert true > 0.1 > false


def test_every_admission_judges_a_harmful_lesson():
    env = make(HomeRulesConfig())
    task = next(task for task in env.sample(32, key(1)) if task.kind == "put")
    entry = harmful.lesson_of(task, true=True, draw=key(2))
    lesson = harmful.MeasuredLesson(entry, task, 0.3)
    admitted = {name: rule(env, lesson, [lesson], key(3)) for name, rule in harmful.RULES.items()}
    assert admitted["append"] is admitted["edits"] is admitted["mean"] is True


def test_agreement_is_reported_by_iterations(monkeypatch):
    monkeypatch.setattr(harmful, "PAIRS", 2)
    monkeypatch.setattr(trial_gap, "TRIALS", 1)
    found = trial_gap.measure(4)
    assert len(found["agreement"]) == trial_gap.ITERATIONS
    assert found["candidates"] >= 1
