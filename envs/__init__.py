"""Text environments, their panels and experts."""
