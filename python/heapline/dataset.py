"""A dataset in a folder, and its runs."""

import json
from pathlib import Path

import pyarrow
import pyarrow.parquet

from .blocks import Blocks

VERSION = 1


class Dataset:
    """A dataset that `heapline dataset add` has written."""

    def __init__(self, folder):
        self.folder = Path(folder)
        manifest = self.folder / "heapline-dataset.json"
        if not manifest.is_file():
            raise FileNotFoundError(f"{folder} is not a dataset: it has no {manifest.name}")
        version = json.loads(manifest.read_text()).get("version")
        if version != VERSION:
            raise ValueError(f"{folder} has version {version}; this package reads version {VERSION}")

    def table(self, name, run=None, columns=None):
        """The rows of a table as a pyarrow.Table: of one run, or of all."""
        files = sorted(self.folder.glob(f"service=*/day=*/run={run or '*'}/{name}.parquet"))
        if not files:
            raise LookupError(f"{self.folder} has no run {run}" if run else f"{self.folder} has no runs")
        read = pyarrow.parquet.ParquetFile
        return pyarrow.concat_tables(read(file).read(columns=columns) for file in files)

    def runs(self, **arguments):
        """One row for each run: labels, totals with variances."""
        return self.table("runs", **arguments)

    def sites(self, **arguments):
        """One row for each run, allocation site and heap."""
        return self.table("sites", **arguments)

    def stacks(self, **arguments):
        """One row for each frame of each stack."""
        return self.table("stacks", **arguments)

    def frames(self, **arguments):
        """One row for each function, file and line."""
        return self.table("frames", **arguments)

    def run(self, run=None):
        """A run by its id or the name of its trace; the only one by default."""
        rows = self.runs().to_pylist()
        found = [row for row in rows if run is None or run in (row["run"], row["trace"])]
        if len(found) != 1:
            names = ", ".join(f"{row['run']} ({row['trace']})" for row in rows[:10])
            raise LookupError(f"{len(found)} runs match {run!r}; give one of: {names}")
        return Run(self, found[0])


class Run:
    """A run of a program."""

    def __init__(self, dataset, info):
        self.dataset = dataset
        #: Its row of the table of runs.
        self.info = info

    def blocks(self):
        """Its sampled blocks."""
        return Blocks(self.dataset.table("blocks", run=self.info["run"]), self.info)
