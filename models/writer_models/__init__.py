"""Writer models: language models that answer the questions of writers.

Read ``writer_model`` first, then ``engine_writer_model`` (the policy, or a frozen model); for endpoints
``endpoint_writer_model``, ``chat_endpoint``, ``connection``, ``request_pace`` and ``answer``.
``prompt`` is the question as a prompt; ``student`` and ``lesson_tokens`` train a policy to write.
"""
