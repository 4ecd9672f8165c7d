"""Customer service of tau2-bench, from a checkout of its authors' repository: telecom, retail and airline.

Read ``tau2`` (what a run sees) first, then ``service_domain`` (tasks, policies and databases, as files),
``service_desk`` (an episode, in a worker process), ``bench_checkout`` (the authors' code there) and ``user_model`` (a
model that plays the user). Nothing of the checkout is imported in this process.
"""

from coevo.envs.tau2.tau2 import Tau2

__all__ = ["Tau2"]
