"""What waits for a person, who decides with ``coevo approve``."""

from typing import Literal

from configs.base import Config


class ApprovalConfig(Config):
    """Nothing waits unless it is said here."""

    admission: Literal["none", "person"] = "none"
    """Whether a person decides what a firing of the writer changes in the bank; the run stops until then."""
    promotion: Literal["none", "person"] = "none"
    """Whether a person decides that a packaged version which has passed its gate becomes champion."""


NOTHING = ApprovalConfig()
