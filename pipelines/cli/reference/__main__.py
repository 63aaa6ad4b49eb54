"""`python -m pipelines.cli.reference [DOCS]` writes the generated pages and schemas into the documentation folder."""

import sys
from pathlib import Path

from pipelines.cli.reference.pages import write

for path in write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs")):
    print(f"wrote {path}")
