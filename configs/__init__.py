"""Settings: the schema, the shipped YAML, and the one place that merges and validates it."""
