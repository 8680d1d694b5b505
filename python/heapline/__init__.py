"""Reads the datasets of Heapline: heap profiles of many runs as Parquet tables.

>>> import heapline
>>> blocks = heapline.open("profiles").run().blocks()
>>> blocks.sizes()["mean"]
"""

from .blocks import Blocks
from .dataset import Dataset, Run

open = Dataset

__all__ = ["Blocks", "Dataset", "Run", "open"]
