"""A bare git repository that jobs are deployed from, and the people who merge, squash, rebase, edit and delete its branches."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from on_kubernetes.deployed_resource import CHAIN, OTHER, OVERRIDES

FILE = "jobs/wordcount/sluice.yaml"
MANIFEST = f"""\
# Deployed by Argo CD.
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata:
  name: words   # not the plan's name
spec:
  image: 'flink:1.18'
  flinkVersion: v1_18
  flinkConfiguration:
    jobmanager.scheduler: adaptive   # scaled in place
    {OVERRIDES}: {CHAIN}:1,{OTHER}:5
  taskManager:
    resource: {{cpu: 2, memory: "2g"}}
  job:
    jarURI: local:///opt/flink/usrlib/job.jar
    args:
      - --topic
      - clicks
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: words
"""
_IDENTITY = ["-c", "user.name=Ann", "-c", "user.email=ann@example.com"]


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *_IDENTITY, *arguments], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class DeployedRepository:
    """Its default branch `main` has a README; people work in a checkout of their own."""

    def __init__(self, folder: Path) -> None:
        self.bare, self._checkout = folder / "flink-jobs.git", folder / "checkout-of-ann"
        git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(self.bare))
        git(folder, "clone", "--quiet", str(self.bare), str(self._checkout))
        git(self._checkout, "switch", "--quiet", "--orphan", "main")
        self.write("README.md", "jobs\n")

    @property
    def url(self) -> str:
        return str(self.bare)

    @property
    def branches(self) -> list[str]:
        return git(self.bare, "branch", "--format=%(refname:short)").splitlines()

    def block(self, **fields: Any) -> dict[str, Any]:
        """`operations.apply.repository` of a job's file."""
        return {"url": self.url, "path": FILE, **fields}

    def read(self, branch: str = "main", path: str = FILE) -> str:
        return git(self.bare, "show", f"{branch}:{path}") + "\n"

    def write(self, path: str, text: str | None, branch: str = "main") -> None:
        """Commit a file to a branch; None removes it."""
        if branch != "main" or self.branches:
            self._switch(branch)
        file = self._checkout / path
        if text is None:
            file.unlink()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        git(self._checkout, "add", "--all")
        git(self._checkout, "commit", "--quiet", "-m", f"Edit {path}")
        git(self._checkout, "push", "--quiet", "origin", f"HEAD:{branch}")

    def edit(self, change: Callable[[str], str], branch: str = "main", path: str = FILE) -> None:
        self.write(path, change(self.read(branch, path)), branch)

    def merge(self, branch: str, how: str = "merge", delete: bool = False) -> None:
        """As a forge does it, by a merge commit, a squash or a rebase."""
        self._switch(branch)
        if how == "rebase":
            git(self._checkout, "rebase", "--quiet", "origin/main")
            git(self._checkout, "push", "--quiet", "origin", "HEAD:main")
        else:
            self._switch("main")
            option = "--squash" if how == "squash" else "--no-ff"
            git(self._checkout, "merge", "--quiet", option, "--no-edit", f"origin/{branch}")
            if how == "squash":
                git(self._checkout, "commit", "--quiet", "-m", f"Squash {branch}")
            git(self._checkout, "push", "--quiet", "origin", "HEAD:main")
        if delete:
            self.delete(branch)

    def delete(self, branch: str) -> None:
        git(self._checkout, "push", "--quiet", "origin", "--delete", branch)

    def _switch(self, branch: str) -> None:
        git(self._checkout, "fetch", "--quiet", "--prune", "origin")
        git(self._checkout, "switch", "--quiet", "--force-create", branch, f"origin/{branch}")
