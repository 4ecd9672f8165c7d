"""Admission: the decision on a proposal. One module per kind, listed in ``admission``, which is read first.

Each has a function that makes an ``Admission`` of its configuration: ``replay``, ``within_group``, ``append``,
``score`` and ``edits``. ``evidence`` bounds a gain over all measurements of a lesson, ``rulings`` decides on
entries, ``neighbours`` finds similar ones, and ``pending_admission`` is a decision that waits for a person.
"""
