"""Packages on the command line.

Read ``make_package`` first: a revision becomes a package, which is registered; ``promotion`` makes it the champion if
it is better, and ``proof`` checks one before it is loaded. ``serving`` serves it at an endpoint.
"""
