"""The HTTP endpoint of a packaged agent: a program of its own, which ``coevo.flows.packages.serving`` starts.

Imports nothing else of coevo, so that a model runs with the code that it was packed with. Read ``endpoint_app`` first:
a request is validated in full before any of it is tokenised, within ``request_limits``, and a refusal is one line of
JSON. ``request_body`` reads bodies, ``model`` loads the agent, ``origin_guard`` refuses requests of other web pages.
"""
