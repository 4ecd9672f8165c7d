"""A reporter that keeps notes and warnings."""

from coevo.tasks.publish.reporter import Silent


class Listener(Silent):
    """Attributes:
    notes: progress, in order.
    warnings: warnings, in order.
    """

    def __init__(self):
        self.notes, self.warnings = [], []

    def note(self, text):
        self.notes.append(text)

    def warn(self, text):
        self.warnings.append(text)
