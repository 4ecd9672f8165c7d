"""Episodes of a scripted expert as records, with or without notes; some of the actions are random on request."""

from coevo.records.demonstration import Moment, Note, PastTurn
from coevo.records.draws import extend, generator
from coevo.records.episode import Completion, Episode, Turn


def episodes(env, tasks, notes, draw, stray=0.0):
    """One episode per task; each action is replaced by a random verb of the guide with chance ``stray``."""
    return [_play(env, task, tuple(notes), extend(draw, task.id), stray) for task in tasks]


def solved(played):
    """Success rate."""
    return sum(episode.success for episode in played) / len(played)


def _play(env, task, notes, draw, stray):
    (state, observation), guide, turns, history = env.start(task), env.guide(task), [], ()
    while True:
        rng = generator(extend(draw, "stray", len(turns)))
        moment = Moment(task.instruction, tuple(map(Note, notes)), history, observation, guide.text)
        if rng.random() < stray:
            action = guide.verbs[rng.integers(len(guide.verbs))]
        else:
            action = env.advise(state, moment, extend(draw, len(turns))).action
        (step,) = env.step([state], [action])
        completion = Completion((1,), (0.0,), action, True)
        turns.append(Turn(observation, (1,), completion, action, step.feedback, step.reward, step.valid))
        history = (*history, PastTurn(observation, action, step.feedback))
        state, observation = step.state, step.observation
        if step.done:
            name = Episode.name(1, "rollout", task, 0)
            return Episode(name, task, 1, 0, tuple(turns), step.success, step.truncated, step.progress)
