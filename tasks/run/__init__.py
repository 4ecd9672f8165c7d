"""A run as a whole: opened at a revision, assembled from its configuration, changed by a person.

Read ``open_run`` first, then ``assemble`` (the parts of a run), ``warmstart``, ``limit`` (when a run stops),
``run_writer_model`` and ``changes`` (what differs from code and settings of the last revision; ``weight_digests``).
``by_hand`` makes revisions outside the loop; ``approval`` is a decision of a person, for which a run waits.
"""
