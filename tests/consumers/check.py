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


def check_perfetto(file, trace, live_at_end):
    """Checks what ui.perfetto.dev relies on: known phases, spans that nest, counters that are numbers; and the totals."""
    spans, counters = {}, {}
    for event in file["traceEvents"]:
        assert event["ph"] in "XCM" and isinstance(event["pid"], int), event
        if event["ph"] == "X":
            start, length = round(event["ts"] * 1000), round(event["dur"] * 1000)
            spans.setdefault(event["tid"], []).append((start, start + length, event))
        elif event["ph"] == "C":
            assert all(isinstance(value, (int, float)) for value in event["args"].values()), event
            counters.setdefault(event["name"], []).append((event["ts"], event["args"]))
    names = {event["tid"] for event in file["traceEvents"] if event["name"] == "thread_name"}
    assert spans.keys() <= names
    for track in spans.values():
        open_spans = []
        for start, end, event in track:
            open_spans = [other for other in open_spans if other > start]
            assert all(end <= other for other in open_spans), event
            open_spans.append(end)
    for readings in counters.values():
        assert readings == sorted(readings, key=lambda reading: reading[0])
    [*_, (_, last)] = counters["live memory, estimated,"]
    close("perfetto live", last["bytes"], live_at_end)
    told = json.loads(run(heapline, "info", trace, "--json"))["has_collections"]
    assert told == bool(spans), trace
    if told:
        gc = json.loads(run(heapline, "gc", trace, "--json"))
        for name, kind in [("minor collection", "minor"), ("major slice", "slice"), ("finalisers", "finalisers")]:
            found = [event for track in spans.values() for *_, event in track if event["name"] == name]
            expected = [row["count"] for row in gc["kinds"] if row["kind"] == kind]
            assert [len(found)] == (expected or [0]), f"{name}: {len(found)}, not {expected}"
        promoted = sum(event["args"].get("promoted_words", 0) for track in spans.values() for *_, event in track)
        close("perfetto promoted", promoted, gc["words"]["promoted"])


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

    check_perfetto(json.loads(export("perfetto", "heap.perfetto.json").read_text()), trace, at_end)

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
