"""Detection of dead flow runs: they send heartbeats, and Prefect marks one Crashed whose heartbeats stop."""

from datetime import timedelta
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events import EventTrigger
from prefect.events.actions import ChangeFlowRunState
from prefect.events.schemas.automations import AutomationCore, Posture

from coevo.flows.servers.end_state import IN_ORDER

NAME = "coevo: mark dead runs Crashed"
SILENCE = timedelta(seconds=120)
"""Time without heartbeats after which a run counts as dead: four heartbeats, since a busy machine sends some late."""
ENDS = ("Completed", "Failed", "Cancelled", "Crashed", *IN_ORDER)
FLOWS = ("session", "coevolve")


def ensure_crash_detection(name: str = NAME, silence: timedelta = SILENCE) -> UUID:
    """Id of the automation of this name; it is created, or brought up to date where an earlier version made it."""
    wanted = _automation(name, silence)
    with get_client(sync_client=True) as client:
        for known in client.read_automations_by_name(name):
            if known.description != wanted.description:
                client.update_automation(known.id, wanted)
            return known.id
        return client.create_automation(wanted)


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
    message = "its heartbeats stopped; what it committed is safe, and the next session continues from there"
    action = ChangeFlowRunState(state=StateType.CRASHED, message=message)
    return AutomationCore(name=name, description=message, trigger=trigger, actions=[action])
