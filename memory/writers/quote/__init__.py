"""Writers that are rules: they quote feedback, and need no model."""
