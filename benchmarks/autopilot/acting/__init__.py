"""Policies that act on running jobs: the jobs, what is fed to them, who acts, and what is recorded.

Time. A run is a workload of minutes, compressed: `FACTOR` seconds of the workload pass in a second. All that policies measure
time in is compressed alike, since a policy sees seconds of the workload only (`scaled`); what Flink takes to rescale and how
often it is read is not, and so weighs `FACTOR` times more than it would otherwise. Names of workload time end in `_s`, as
everywhere; those of real time in `_real_s`.
"""

from typing import Final

FACTOR: Final = 12.0
"""Workload seconds in a second."""
