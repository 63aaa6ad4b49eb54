"""The stages of planning, one module each, in the order a plan is made; the workspace; the command line."""
