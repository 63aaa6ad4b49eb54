"""`python -m sluice_airflow.standing`: run by `make airflow`, with the settings of the Makefile."""

import os
import sys
from pathlib import Path

from sluice_airflow.standing.supervisor import SETTINGS, run

# Airflow reads its settings when it is first imported, and the components read them from the environment.
os.environ.update({**SETTINGS, **os.environ})
os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
run(Path(os.environ["AIRFLOW_HOME"]), os.environ["AIRFLOW__API__BASE_URL"])
