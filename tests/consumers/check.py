"""Opens what `heapline export` writes with the programs that it is written for.

Usage: check.py HEAPLINE SPEEDSCOPE_SCHEMA TRACE...
"""

import csv
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

import duckdb
import jsonschema
import pyarrow.parquet

heapline, schema_path, *traces = sys.argv[1:]
schema = json.loads(Path(schema_path).read_text())


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def close(what, ours, theirs, tolerance=1.0):
    assert abs(ours - theirs) <= tolerance + 1e-6 * abs(theirs), f"{what}: {ours}, not {theirs}"


def check(trace, folder):
    summary = json.loads(run(heapline, "summary", trace, "--json"))
    blocks = summary["subject"]["sampled_blocks"]
    allocated = summary["allocated"]["bytes"]["value"]
    at_peak = summary["live_at_peak"]["bytes"]["value"]
    at_end = summary["live_at_end"]["bytes"]["value"]

    def export(kind, name, *arguments):
        path = folder / name
        run(heapline, "export", trace, "--format", kind, "-o", str(path), *arguments)
        return path

    # Each stack is rounded by itself.
    lines = export("collapsed", "heap.folded").read_text().splitlines()
    close("collapsed", sum(int(line.rsplit(" ", 1)[1]) for line in lines), allocated, len(lines))

    xml.etree.ElementTree.parse(export("svg", "heap.svg"))

    speedscope = json.loads(export("speedscope", "heap.speedscope.json").read_text())
    jsonschema.validate(speedscope, schema)
    totals = [sum(profile["weights"]) for profile in speedscope["profiles"]]
    for total, expected in zip(totals, [allocated, at_peak, at_end], strict=True):
        close("speedscope", total, expected, blocks + 1)

    firefox = json.loads(export("firefox", "heap.firefox.json").read_text())
    assert firefox["meta"]["version"] > 0
    if blocks:
        allocations = firefox["threads"][0]["nativeAllocations"]
        assert len(allocations["weight"]) == len(allocations["stack"]) == len(allocations["time"])
        close("firefox", sum(allocations["weight"]), at_end, blocks + 1)

    with open(export("csv", "heap.csv"), newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == blocks
    close("csv", sum(float(row["estimated_bytes"]) for row in rows), allocated, blocks)

    table = export("parquet", "heap.parquet")
    stacks = folder / "heap.stacks.parquet"
    assert pyarrow.parquet.read_table(table).num_rows == blocks
    [(total, orphans)] = duckdb.sql(
        f"""select coalesce(sum(b.estimated_bytes), 0), count(*) filter (s.stack_id is null)
            from '{table}' b left join '{stacks}' s using (stack_id)"""
    ).fetchall()
    close("parquet", total, allocated)
    assert orphans == 0

    profile = export("pprof", "heap.pb.gz", "--at", "peak")
    raw = run("go", "tool", "pprof", "-raw", str(profile)).splitlines()
    kinds = next(line for line in raw if line.startswith("alloc_objects/count")).split()
    space = [kind.split("[")[0] for kind in kinds]
    start, end = raw.index("Samples:") + 2, raw.index("Locations")
    numbers = [
        [int(n) for n in line.split(":")[0].split()]
        for line in raw[start:end]
        if line.strip() and line.split(":")[0].replace(" ", "").isdigit()
    ]
    for kind, expected in [("alloc_space/bytes", allocated), ("inuse_space/bytes", at_peak)]:
        total = sum(row[space.index(kind)] for row in numbers)
        close(f"pprof {kind}", total, expected, len(numbers) + 1)


for trace in traces:
    with tempfile.TemporaryDirectory() as folder:
        check(trace, Path(folder))
    print(f"{trace}: ok")
