"""Publishing committed revisions to MLflow and Prefect, off the critical path.

Read ``publisher`` first: a thread that publishes revisions in order. While MLflow is away, revisions are committed
without it; ``catchup`` publishes them later. ``mlflow`` writes MLflow's pages; ``prefect`` writes Prefect's artifacts
from ``revision_page`` and ``proposal_page``. ``alarms`` are notices about a revision, ``reporter`` receives progress
and keeps it for other processes.
"""
