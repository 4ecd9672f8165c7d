"""The HTTP endpoint of a packaged agent: a program of its own, which ``flows.serving`` starts.

Imports nothing else of coevo, so that a model is played by the code that it was packed with. A request is checked as a
whole before any of it is tokenised; a refusal is one line of JSON, ``error_code`` and ``message``.
"""
