"""The environment's expert in place of a policy: it solves tasks, reads its lessons, and needs no weights."""

from support.player import environment, player

from records.demonstration import Moment
from records.draws import extend
from records.episode import Completion, Episode, Turn


class ExpertPlayer:
    def __init__(self):
        self.env, self.context = environment(), player().context

    def play(self, attempts):
        return [self._episode(attempt) for attempt in attempts]

    def _episode(self, attempt):
        task, turns, done = attempt.task, [], False
        state, observation = self.env.start(task)
        while not done:
            shown = tuple(dict.fromkeys((*attempt.entries, *attempt.recall(observation))))
            lessons = tuple(entry.strategy for entry in shown)
            history = tuple((turn.action, turn.feedback) for turn in turns)
            moment = Moment(task.instruction, lessons, history, observation)
            answer = self.env.expert(moment, extend(attempt.key, len(turns)))
            (step,) = self.env.step([state], [answer.action])
            completion = Completion((7,), (-0.5,), answer.action, True)
            seen = tuple(entry.id for entry in shown)
            turns.append(
                Turn(observation, (1,), completion, answer.action, step.feedback, step.reward, step.valid, seen)
            )
            state, observation, done = step.state, step.observation, step.done
        return Episode(
            attempt.id,
            task,
            attempt.revision,
            attempt.replica,
            tuple(turns),
            step.success,
            step.truncated,
            step.progress,
        )
