"""Stateful simulators as environments: they run in worker processes, and a state is a task with its actions.

Read ``interface`` (a live episode, and the workers that host them) first, then ``stateful_environment`` (positions and
replay), ``local_workers`` (worker processes on this machine), ``process`` (one of them), ``simulator_worker`` (the
program that it runs) and ``wire`` (what it returns).
"""
