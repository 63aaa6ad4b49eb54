"""The report of an evaluation: curves, figures and the HTML page."""
