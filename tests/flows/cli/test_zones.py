"""Time zones of schedules: what is none is one line, and a change of clocks is named."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import pytest
from prefect.schedules import Cron

from coevo.flows.cli import schedule
from coevo.flows.cli.schedule import _check_zone, next_change
from coevo.flows.sessions import schedules
from coevo.flows.sessions.schedules import Schedule, StoredSchedule
from coevo.utilities.errors import CoevoError

NO_ZONES = [
    "Asia", "America", "Europe", "America/Argentina", "A" * 400, "Europe/" + "x" * 5000, "", " ", ".", "..", "/", "\0",
    "../Berlin", "/etc/passwd", "Europe/Berlin/", "Europe//Berlin", "Europe/Nowhere", "zone.tab", "ü" * 300, "UTC+25h",
    "posix/Europe/Berlin", "right/UTC", "posixrules", "tzdata.zi", "europe/berlin", "GMT+3", "+02:00", "UTC\n",
    "\ud800", "Europe/../UTC", "__init__", "local",
]  # fmt: skip


@pytest.mark.parametrize("name", NO_ZONES)
def test_what_is_no_time_zone_is_one_line(name):
    with pytest.raises(CoevoError, match=r"^--timezone: .* is not a time zone: write one like Europe/Berlin$") as error:
        _check_zone(name)
    assert len(str(error.value)) < 200


def test_every_time_zone_that_is_taken_is_one_of_prefects():
    for name in ("UTC", "Europe/Berlin", "America/Argentina/Salta", "Etc/GMT+3", *sorted(available_timezones())[::20]):
        _check_zone(name)
        Cron("0 2 * * *", timezone=name)


CHANGES = {
    "Europe/Berlin": "2026-10-25T01:00",
    "America/New_York": "2026-11-01T06:00",
    "America/Havana": "2026-11-01T05:00",
    "America/Santiago": "2026-09-06T04:00",
    "Asia/Beirut": "2026-10-24T21:00",
    "Africa/Cairo": "2026-10-29T21:00",
    "Australia/Lord_Howe": "2026-10-03T15:30",
    "Pacific/Auckland": "2026-09-26T14:00",
    "UTC": None,
    "Asia/Tokyo": None,
}
"""Changes in UTC after September 1, 2026, as the zones' governments have set them."""


@pytest.mark.parametrize(("zone", "when"), CHANGES.items())
def test_the_next_change_of_clocks_is_found_to_the_minute(zone, when):
    found = next_change(zone, datetime(2026, 9, 1, 12, 34, 56, tzinfo=UTC))
    assert found == (None if when is None else datetime.fromisoformat(when).replace(tzinfo=UTC))
    if found is not None:
        assert found.astimezone(ZoneInfo(zone)).utcoffset() is not None


class September(datetime):
    """Time that stands still before all of the changes."""

    @classmethod
    def now(cls, tz=None):
        return datetime(2026, 9, 1, tzinfo=tz)


@pytest.mark.parametrize(("zone", "when"), CHANGES.items())
def test_the_list_of_schedules_names_the_change(coevo, monkeypatch, zone, when):
    monkeypatch.setattr(schedule, "datetime", September)
    planned = StoredSchedule("mine", Schedule("0 2 * * *", zone, {}), paused=False, next=None, last=None)
    monkeypatch.setattr(schedules, "planned", lambda directory: [planned, planned])
    shown = " ".join(coevo("schedule", "list").out.split())
    if when is None:
        assert "Clocks" not in shown
    else:
        there = datetime.fromisoformat(when).replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
        assert shown.count(f"Clocks in {zone} change on {there:%Y-%m-%d to %H:%M}: ") == 1
