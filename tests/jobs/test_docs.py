"""The examples of docs/how-to/describe-a-job.md work, and docs/reference/catalogue.md lists every job."""

import re
import textwrap
from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.inputs.catalogue import catalogue_folder, job_names, load_job

DOCS = catalogue_folder() / "docs"
PAGE = (DOCS / "how-to" / "describe-a-job.md").read_text()
CATALOGUE = (DOCS / "reference" / "catalogue.md").read_text()


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


def test_the_example_of_an_error_is_the_message(example: Path) -> None:
    example.write_text(example.read_text().replace("cpu_s: 2.0e-5", "cpus: 2.0e-5"))
    expected = re.search(r"error: jobs/my-job.yaml: (line .*?known fields here: )", PAGE)
    assert expected is not None
    with pytest.raises(InvalidInput, match=re.escape(expected[1])):
        load_job(example)


def test_every_job_of_the_catalogue_is_listed() -> None:
    assert sorted(re.findall(r"^\| `([\w-]+)` \| ", CATALOGUE, re.MULTILINE)) == sorted(job_names())


def test_the_bytes_of_a_row_are_those_of_the_jobs() -> None:
    """17 + 8 n bytes for n fields: auction and time; auction, count, start and end."""
    q5 = load_job("nexmark-q5")
    assert "17 + 8 n bytes" in CATALOGUE
    assert q5.operator("bids").cost.bytes_out == 17 + 8 * 2
    assert q5.operator("count-window").cost.bytes_out == 17 + 8 * 4
