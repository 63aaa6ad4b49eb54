"""Checks of samples and features: the rules, the evidence they look at, and Great Expectations to hold them."""

import os

# Great Expectations reads this when it is imported: what is checked here is nobody else's business.
os.environ["GX_ANALYTICS_ENABLED"] = "false"
