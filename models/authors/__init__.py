"""Authors: language models that answer the questions of writers.

Read ``author`` first, then ``open_author`` (the policy, or a frozen model) and ``engine_author``; for endpoints
``endpoint_author``, ``connection``, ``request_pace``, ``answer`` and ``constraint``. ``prompt`` is the question as a
prompt; ``student`` and ``items`` train a policy to write.
"""
