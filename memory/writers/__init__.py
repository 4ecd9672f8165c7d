"""Writers of candidate entries. Read ``base`` first; ``WRITERS`` in it lists them.

``quote`` has rules that quote feedback, ``model`` writers that ask a language model. Each module has a function
``writer(config, key) -> Writer``.
"""
