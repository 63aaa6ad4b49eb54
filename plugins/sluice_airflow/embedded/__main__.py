"""`python -m sluice_airflow.embedded DAG_FILE NAME=VALUE...`: run a DAG once, its stages in a process beside Airflow."""

import runpy
import sys
from pathlib import Path

from sluice_airflow.embedded.stage_process import start

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    start(Path(sys.argv[0]).stem)
    runpy.run_path(sys.argv[0], run_name="__main__")
