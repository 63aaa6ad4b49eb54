import subprocess
import sys
from pathlib import Path

import pytest

from testbeds.local.folder import own_folder

OWNER = (
    "from testbeds.local.folder import own_folder; kept = own_folder('servers'); print(kept[0], flush=True); input()"
)


def test_only_folders_of_owners_that_are_gone_are_removed(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert owner.stdout is not None
    others = Path(owner.stdout.readline().strip())
    mine, lock = own_folder("servers")
    assert others.is_dir() and mine.parent == others.parent == tmp_path / "servers"
    owner.kill()
    owner.communicate()
    cleaned: list[Path] = []
    own_folder("servers", cleaned.append)[1].close()
    assert cleaned == [others] and not others.exists() and mine.is_dir()
    lock.close()
