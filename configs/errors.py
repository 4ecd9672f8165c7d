"""Errors a user can act on: the command line prints them as one line and exits with 2."""


class CoevoError(Exception):
    """A mistake or an outside condition, said in one line that names what is wrong and the remedy."""


class ConfigError(CoevoError):
    """A configuration that cannot be used: names the field, its value and what would be right."""
