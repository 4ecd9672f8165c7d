"""Questions of a writer to its writer model: a journal of the answers, a budget, and the artifact of a revision.

``ask_writer_model`` puts the questions within what may be ``spent``, ``journal`` keeps every answer as it arrives, and
``artifact`` commits them. ``writer_rewards`` are what a trained writer learns from; ``writer_training`` teaches one
before a run.
"""
