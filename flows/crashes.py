"""Telling which flow runs are dead: they send heartbeats, and Prefect marks one Crashed whose heartbeats stop."""

from datetime import timedelta
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, Posture

NAME = "coevo: mark dead runs Crashed"
SILENCE = timedelta(seconds=120)
"""After which a run is taken for dead: four heartbeats, since a process that waits for a core is late with some."""
ENDS = ("Completed", "Failed", "Cancelled", "Crashed")
FLOWS = ("night", "coevolve")


def ensure_crash_detection(name: str = NAME, silence: timedelta = SILENCE) -> UUID:
    """Id of the automation of this name, which is made where there is none."""
    with get_client(sync_client=True) as client:
        for known in client.read_automations_by_name(name):
            return known.id
        return client.create_automation(_automation(name, silence))


def _automation(name: str, silence: timedelta) -> AutomationCore:
    heartbeat = "prefect.flow-run.heartbeat"
    trigger = EventTrigger(
        after={heartbeat},
        expect={heartbeat, *(f"prefect.flow-run.{end}" for end in ENDS)},
        match={"prefect.resource.id": "prefect.flow-run.*"},
        match_related={"prefect.resource.role": "flow", "prefect.resource.name": list(FLOWS)},
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=silence,
    )
    message = "its heartbeats stopped; what it committed is safe, and the next night goes on from there"
    action = ChangeFlowRunState(state=StateType.CRASHED, message=message)
    return AutomationCore(name=name, description=message, trigger=trigger, actions=[action])
