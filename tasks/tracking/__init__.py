"""MLflow: what its pages show of a run. Everything here may be repeated, and changes nothing then."""
