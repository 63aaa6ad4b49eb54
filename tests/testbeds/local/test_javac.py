from pathlib import Path

import pytest

from models.errors import SluiceError
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk


@pytest.mark.slow
def test_what_does_not_compile_is_reported_in_javacs_words(tmp_path: Path) -> None:
    source = tmp_path / "Wrong.java"
    source.write_text("class Wrong { int x = true; }")
    with pytest.raises(SluiceError, match="incompatible types"):
        compile_java([source], tmp_path / "classes", "", find_jdk())
