"""The gateway: HTTP for agents with a loop of their own, in OpenAI's dialect and in Anthropic's.

Read ``gateway_app`` first: addresses, tokens, and the way of a request. A dialect (``openai_dialect``,
``anthropic_dialect``) turns a body into a ``ChatRequest`` and answers back, within the terms of ``dialect``.
``run_gateway`` opens a run's policy and bank and listens.
"""
