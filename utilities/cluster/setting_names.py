"""Names of the settings that say where a cluster is, and how long one waits for it: a command has others than a run."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SettingNames:
    """Names in messages; by default those of a run.

    Attributes:
        address: setting of the address.
        limit: beginning of the words for the time limit; empty where no setting has it.
    """

    address: str = "placement.address"
    limit: str = "placement.startup_timeout="


OF_RUN = SettingNames()
