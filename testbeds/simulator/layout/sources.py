"""The shares of the records that source tasks read, which follow from the partitions of their topic."""

import numpy as np

from models.job import Job, Kind


def source_shares(job: Job, name: str, tasks: int) -> np.ndarray:
    """Share of the job's source rate that each task of an operator reads, float64[tasks]; 0 if it is not a source.

    Where the source states a `max_parallelism`, that is the number of its partitions, which hold equally many records each.
    They are assigned in turn, so N partitions give some of p tasks ceil(N / p) and the others floor(N / p). A source
    without it is divided evenly.
    """
    operator = job.operator(name)
    if operator.kind is not Kind.SOURCE:
        return np.zeros(tasks)
    partitions = operator.max_parallelism or tasks
    return np.asarray(operator.rate_share * np.bincount(np.arange(partitions) % tasks, minlength=tasks) / partitions)
