"""`python -m pipelines.cli`: the `sluice` command where its script is not on the path."""

from pipelines.cli import main

main()
