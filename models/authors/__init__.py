"""Authors: language models that answer the questions of writers.

Read ``base`` first, then ``open``, ``engine`` and ``frozen``; for endpoints ``endpoint``, ``connection``,
``secret``, ``answer``, ``usage`` and ``constraint``.
"""
