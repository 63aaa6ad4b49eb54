"""What docs/jobs.md tells its reader to do works as it says."""

import re
import textwrap
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.catalogue import catalogue_folder, job_names, load_job

PAGE = (catalogue_folder() / "docs" / "jobs.md").read_text()


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The job file of the page."""
    block = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    path = tmp_path / "my-job.yaml"
    path.write_text(textwrap.dedent(block[1]))
    return path


def test_the_example_is_a_job(example: Path) -> None:
    assert load_job(example).order == ("source", "count", "sink")


def test_the_example_of_a_fault_is_what_is_told(example: Path) -> None:
    example.write_text(example.read_text().replace("cpu_s: 2.0e-5", "cpus: 2.0e-5"))
    told = re.search(r"error: jobs/my-job.yaml: (line .*?known fields here: )", PAGE)
    assert told is not None
    with pytest.raises(InvalidInput, match=re.escape(told[1])):
        load_job(example)


def test_every_job_of_the_catalogue_is_listed() -> None:
    table = PAGE.partition("## Adding a job")[0]
    assert sorted(re.findall(r"^\| `([\w-]+)` \| ", table, re.MULTILINE)) == sorted(job_names())


def test_the_page_tells_the_rows_bytes_as_the_jobs_have_them() -> None:
    """17 + 8 n bytes for n fields: auction and time; auction, count, start and end."""
    q5 = load_job("nexmark-q5")
    assert "17 + 8 n bytes" in PAGE
    assert q5.operator("bids").cost.bytes_out == 17 + 8 * 2
    assert q5.operator("count-window").cost.bytes_out == 17 + 8 * 4
