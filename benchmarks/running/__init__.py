"""Jobs that Sluice did not start: observed, planned from running, and what that costs them."""
