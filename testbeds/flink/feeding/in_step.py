"""Keeps sources that replay recordings of the same time at the same point of it, so that records that belong together join.

    n_s   records in the recording of source s       r_s   its rate: proportional to n_s (`in_proportion`)
    p_s   = (taken_s + shift_s) / n_s                passes through its recording, as a fraction

All sources take as long for a pass, n_s / r_s. What a source owes at one rate is dropped at the next, so a source that was
held back falls behind the others for good. With each order, all continue from where the furthest one is.
"""

from collections.abc import Mapping

from models.job import Job


class InStep:
    """The shifts of a job's sources."""

    def __init__(self, records: Mapping[str, int]) -> None:
        """
        Args:
            records: in the recording of each source, by the name under which its rate is set; empty if they do not belong
                together.
        """
        self._records = records if len(records) > 1 else {}
        self.shifts: Mapping[str, int] = dict.fromkeys(self._records, 0)
        """Events that each source skips."""

    def align(self, taken: Mapping[str, float]) -> Mapping[str, int]:
        """The shifts with which all continue from where the furthest is.

        Args:
            taken: events that the tasks of each source have taken so far.
        """
        if self._records:
            furthest = max((taken[s] + self.shifts[s]) / n for s, n in self._records.items())
            self.shifts = {s: max(0, round(furthest * n - taken[s])) for s, n in self._records.items()}
        return self.shifts


def in_proportion(job: Job, records: Mapping[str, int]) -> Job:
    """The job with the rate divided among its sources by the records in their recordings.

    Args:
        records: by operator; a job with a source that is not among them stays as it is.
    """
    names = [source.name for source in job.sources]
    if not set(names) <= records.keys():
        return job
    total = sum(records[name] for name in names)
    operators = tuple(
        o.model_copy(update={"rate_share": records[o.name] / total}) if o.name in names else o for o in job.operators
    )
    return job.model_copy(update={"operators": operators})
