"""The public face of coevo: what notebooks and plug-ins import."""
