"""Scheduled sessions: ``schedules`` are Prefect deployments, ``session_worker`` runs what is due.

``scheduled_session`` plays one, reports it in Prefect's logs and summarises it; ``notification`` sends the summary.
"""
