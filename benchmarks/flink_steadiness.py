"""How steady a job on a real Flink is from its first window on: what it takes when it is offered more, window by window.

    python benchmarks/flink_steadiness.py [nexmark-q1] [--windows 20] [--deployments 2]

One task of each operator, on TaskManagers held to 0.15 cores. Beside each rate stands the share of the processor time asked
for that the hypervisor gave to other machines meanwhile; windows are not measured again here.
"""

import argparse
from typing import Final

from rich.console import Console
from rich.table import Table

from models.capacity.mst import VERY_HIGH_RATE
from pipelines.catalogue import load_cluster, load_job, load_sql
from testbeds.flink.stolen import StolenTime
from testbeds.flink.testbed import FlinkTestbed
from testbeds.flink.user_programs import SqlScript
from testbeds.protocol import Configuration

MEMORY_MB: Final = 1024.0
WINDOW_S: Final = 5.0
ON_THE_WAY: Final = "ramp"
"""A phase whose windows are measured once."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", default="nexmark-q1", help="a job of the catalogue that is SQL")
    parser.add_argument("--windows", type=int, default=20, help="of 5 s each")
    parser.add_argument("--deployments", type=int, default=2, help="one after the other on the same JVMs")
    asked = parser.parse_args()
    job, script = load_job(asked.job), load_sql(asked.job)
    if script is None:
        parser.error(f"{asked.job} is no SQL")
    table = Table("deployment", "window", "records/s", "stolen", title=f"What {asked.job} takes in windows of 5 s")
    with FlinkTestbed(load_cluster("flink-local"), [MEMORY_MB], program=SqlScript(script)) as testbed:
        for deployment in range(asked.deployments):
            configuration = Configuration(dict.fromkeys(job.order, 1), MEMORY_MB)
            with testbed.deploy(job, configuration, run="steadiness", seed=deployment) as run:
                for window in range(asked.windows):
                    stolen = StolenTime()
                    took = run.inject(VERY_HIGH_RATE, WINDOW_S, ON_THE_WAY).achieved_rate
                    table.add_row(f"{deployment + 1}", f"{window + 1}", f"{took:,.0f}", f"{stolen.share():.0%}")
    Console().print(table)


if __name__ == "__main__":
    main()
