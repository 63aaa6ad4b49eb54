"""Checks of samples, observations and features: rules, evidence, and Great Expectations to apply them."""

import os

# Great Expectations reads this when it is imported, and would report usage otherwise.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
