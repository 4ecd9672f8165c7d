"""Packages on the command line.

Read ``package`` first: a revision becomes a package, which is registered; ``promotion`` makes it the champion.
``serving`` serves it at an endpoint, and ``evaluate_endpoint`` evaluates a served agent.
"""
