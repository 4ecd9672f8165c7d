"""The report of a run: one HTML file that needs nothing but a browser."""
