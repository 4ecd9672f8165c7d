"""One file a step of the loop: a plain function and its Prefect task."""
