"""Commands that make, show, compare and apply plans, check them for drift, and tune placement thresholds for replans."""
