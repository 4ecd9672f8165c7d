"""Questions of a writer to its author: a journal of the answers, a budget, and the artifact of a revision.

``author`` puts the questions, ``journal`` keeps every answer as it arrives, ``artifact`` commits them.
"""
