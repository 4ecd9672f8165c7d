"""Empty: its place tells a checkout."""
