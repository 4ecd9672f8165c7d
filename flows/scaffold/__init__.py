"""New packages for parts, environments and recipes of one's own, each with a test that passes as written.

``new_package`` checks the name and writes the folder; ``templates`` has the texts, in which ``$name``,
``$module`` and ``$cls`` stand for the names.
"""
