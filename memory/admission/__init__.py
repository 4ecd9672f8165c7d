"""What becomes of a proposal: one module a kind, named after the ``type`` of its configuration.

Each has a function ``admission(config) -> Admission``; ``memory.admission.base`` says what an admission is.
"""
