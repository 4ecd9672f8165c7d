"""Writers of candidate entries. Read ``writer`` first, which lists them.

``quote`` has rules that quote feedback, ``model`` writers that ask a language model. Each module of theirs has a
function that makes a ``Writer`` of its configuration and key.
"""
