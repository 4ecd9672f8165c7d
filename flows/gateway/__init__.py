"""The gateway: HTTP for agents with a loop of their own.

Read ``gateway_app`` first: addresses, tokens, and the way of a request. Bodies and replies in the dialects of OpenAI
and Anthropic are those of a packaged agent's endpoint. ``run_gateway`` opens a run's policy and bank and listens.
"""
