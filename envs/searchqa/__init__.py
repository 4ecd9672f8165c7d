"""Search QA: questions that are answered by searching an encyclopedia, one made from a seed or files of the user's.

Read ``encyclopedia`` (realms, sources that contradict each other, passages, questions) first, then ``search_episode``
(actions and rules), ``search_corpus`` (files and retrievers), ``question_draws`` (tasks, panels, notes),
``passage_reader`` (the expert) and ``searchqa``, the environment.
"""

from coevo.envs.searchqa.searchqa import SearchQA

__all__ = ["SearchQA"]
