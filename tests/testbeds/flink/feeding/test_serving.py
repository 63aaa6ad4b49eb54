from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from testbeds.flink.feeding.serving import FileServer


def test_files_that_were_added_are_served_and_no_others(tmp_path: Path) -> None:
    (tmp_path / "a b.jsonl").write_text("{}\n")
    (tmp_path / "secret").write_text("x")
    server = FileServer("127.0.0.1")
    try:
        url = server.url(tmp_path / "a b.jsonl")
        assert server.url(tmp_path / "a b.jsonl") == url
        with urlopen(url, timeout=5) as answer:
            assert answer.read() == b"{}\n"
        base = url.rsplit("/", 2)[0]
        for path in ("/secret", "/0/secret", "/0/../secret", f"/{tmp_path}/secret"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(base + path, timeout=5)
    finally:
        server.close()
