"""One commit per revision: policy, optimizer, bank, episodes, configuration and code.

Read ``lineage`` (writing) and ``run_history`` (reading) first, then ``repository`` (git and DVC of one run),
``revision``, ``objects``, ``workspace``. ``fsck`` checks, ``remote`` pushes and pulls.
"""
