"""The loop, the other flows and the command line."""
