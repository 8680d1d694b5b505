"""Runs the recipes of docs/dataset.md and the notebook on a dataset, and compares their numbers with Heapline's.

Usage: dataset.py HEAPLINE PROJECT
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb

heapline, project = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()

# Versions and their traces.
TRACES = {
    "1.0": ["fixtures/mix-ocaml413/trace.ctf", "fixtures/odd/empty.ctf"],
    "1.1": ["fixtures/mix-ocaml53/trace.ctf", "fixtures/generated/domains.ctf", "fixtures/damaged/garbage.ctf"],
}
ALL = [trace for traces in TRACES.values() for trace in traces]


def run(*command, **arguments):
    done = subprocess.run(command, capture_output=True, text=True, **arguments)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def report(command, *arguments):
    return json.loads(run(heapline, command, *arguments, "--json", cwd=project))


def near(what, ours, theirs, tolerance=1e-9):
    assert abs(ours - theirs) <= 1e-9 + tolerance * abs(theirs), f"{what}: {ours}, not {theirs}"


def of_samples(what, ours, theirs, tolerance=1e-9):
    """The error of a peak, without that it may be too high, which is no variance."""
    assert 0 <= ours <= theirs * (1 + tolerance), f"{what}: {ours}, not up to {theirs}"


def recipes(language, comment):
    """The code of the documentation by the comment that each begins with."""
    text = (project / "docs/dataset.md").read_text()
    blocks = re.findall(rf"^```{language}\n{comment} (.*?)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count(f"```{language}\n"), f"a recipe in {language} has no title"
    return dict(blocks)


def by_function(list_name, traces):
    """Bytes and squared errors by function, from the summaries of some traces."""
    sums = {}
    for trace in traces:
        summary = report("summary", trace, "--by", "function", "--all-code", "--rows", "10000")
        [ranking] = [ranking for ranking in summary["lists"] if ranking["kind"] == list_name]
        assert ranking["hidden_rows"] == 0
        for row in ranking["rows"]:
            bytes, variance = sums.get(row["label"]["name"], (0, 0))
            figures = row["figures"]["bytes"]
            sums[row["label"]["name"]] = (bytes + figures["value"], variance + figures["error"] ** 2)
    return sums


def check_versions(rows):
    assert [row[:2] for row in rows] == [(version, len(traces)) for version, traces in TRACES.items()]
    for version, runs, bytes, error in rows:
        figures = [report("summary", trace)["live_at_end"] for trace in TRACES[version]]
        near(version, bytes, sum(figure["bytes"]["value"] for figure in figures) / runs)
        seen = [figure["bytes"]["error"] ** 2 for figure in figures if figure["samples"]]
        near(f"error of {version}", error, sum(seen) ** 0.5 / runs, 1e-4)


def check_functions(rows):
    expected = by_function("live_at_peak", ALL)
    assert len(rows) == 10 and sorted(row[1] for row in rows)[::-1] == [row[1] for row in rows]
    near("the largest", rows[0][1], max(bytes for bytes, _ in expected.values()))
    for function, bytes, error in rows:
        near(function, bytes, expected[function][0])
        of_samples(f"error of {function}", error, expected[function][1] ** 0.5, 1e-4)


def check_changes(rows):
    before, after = (by_function("allocated", traces) for traces in TRACES.values())
    expected = {}
    for function in before | after:
        old, new = before.get(function, (0, 0)), after.get(function, (0, 0))
        change, error = new[0] - old[0], (old[1] + new[1]) ** 0.5
        if change > error * 1.96 / 1.959964:
            expected[function] = change
    assert expected and {row[0] for row in rows} == set(expected), f"{rows}, not {expected}"
    for function, change, _ in rows:
        near(function, change, expected[function])


def check_live(rows):
    live = {}
    for run_info in listed.values():
        # What is live at the end of a shorter run is live in all queries on later moments.
        lasts = report("summary", run_info["path"])["subject"]["duration"]
        moment = "20ms" if lasts > 0.02 else "end"
        figures = report("summary", run_info["path"], "--live", moment)["allocated"]
        if figures["samples"]:
            live[run_info["run"]] = figures["bytes"]["value"]
    assert [row[0] for row in rows] == sorted(live) and len(live) > 2, f"{rows}, not {live}"
    for run, bytes, *_ in rows:
        near(run, bytes, live[run])


def check_callers(rows):
    [(site, function, bytes)] = duckdb.sql(
        "SELECT site, any_value(function), sum(allocated_bytes) AS b FROM sites GROUP BY site ORDER BY b DESC LIMIT 1"
    ).fetchall()
    near(f"callers of {function}", sum(row[1] for row in rows), bytes)
    assert all(row[0] and row[0] != function for row in rows), rows


def check_lifetimes(rows):
    collected = sum(report("summary", trace)["collected"]["bytes"]["value"] for trace in ALL if not trace.endswith("empty.ctf"))
    near("collected", sum(row[1] for row in rows), collected)
    assert all(row[0] == 2**number for number, row in enumerate(rows))


CHECKS = {
    "Mean live memory at the end, by version": check_versions,
    "Functions with most memory live at the peak": check_functions,
    "Functions that allocate more in version 1.1 than in 1.0, beyond the sampling error": check_changes,
    "Live memory after 20 ms, by run": check_live,
    "Callers of the site that allocates most": check_callers,
    "Bytes of blocks that died, by lifetime": check_lifetimes,
}


def check_list(runs):
    """The totals of runs are those of their summaries."""
    for info in runs:
        summary = report("summary", info["path"])
        for total in ["allocated", "live_at_peak", "live_at_end", "promoted"]:
            for unit in ["bytes", "blocks"]:
                what = f"{info['path']}: {total} {unit}"
                near(what, info[f"{total}_{unit}"], summary[total][unit]["value"])
                if summary[total]["samples"]:
                    error = 1.959963984540054 * info[f"{total}_{unit}_variance"] ** 0.5
                    check = of_samples if total == "live_at_peak" else near
                    check(f"{what}, error", error, summary[total][unit]["error"])
        assert info["damaged"] == ("damaged" in info["path"])


def compare(what, ours, theirs):
    """Numbers of the notebook with those of `heapline stats`, which has more of them."""
    if isinstance(ours, dict):
        for name, value in ours.items():
            compare(f"{what}.{name}", value, theirs[name])
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), f"{what}: {len(ours)}, not {len(theirs)}"
        for number, values in enumerate(zip(ours, theirs)):
            compare(f"{what}[{number}]", *values)
    elif ours is None or theirs is None:
        assert ours is theirs, f"{what}: {ours}, not {theirs}"
    else:
        # Heapline rounds the ages of quantiles to about 3 %.
        near(what, ours, theirs, 0.035 if ".lifetimes.seconds." in what else 1e-9)


def check_notebook(info, folder):
    notebook = project / "python/notebooks/profile.ipynb"
    path = os.pathsep.join([str(project / "python"), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {"PYTHONPATH": path, "HEAPLINE_DATASET": str(folder / "profiles"), "HEAPLINE_RUN": info["run"]}
    convert = [sys.executable, "-m", "nbconvert", "--execute", "--to", "notebook", "--output-dir", str(folder)]
    run(*convert, "--output", "executed.ipynb", str(notebook), env=os.environ | variables)
    cells = json.loads((folder / "executed.ipynb").read_text())["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    charts = [output for output in outputs if "image/png" in output.get("data", {})]
    assert len(charts) == 5, f"{len(charts)} charts"
    [stats] = [output for output in outputs if output["output_type"] == "execute_result" and "image/png" not in output["data"]]
    ours = ast.literal_eval("".join(stats["data"]["text/plain"]))
    assert set(ours) == {"total", "sizes", "lifetimes", "segments", "phases"}
    compare("stats", ours, report("stats", info["path"]))


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    for version, traces in TRACES.items():
        run(heapline, "dataset", "add", f"{folder}/profiles", *traces, "--label", f"version={version}", cwd=project)
    assert "5 runs, 0 problems" in run(heapline, "dataset", "check", "profiles")
    # Adding them again says which run each trace is.
    listed = {}
    for trace in ALL:
        once = run(heapline, "dataset", "add", f"{folder}/profiles", trace, cwd=project)
        listed[once.strip().rsplit("run=", 1)[1]] = {"path": trace}
    for info in json.loads(run(heapline, "dataset", "list", "profiles", "--json"))["runs"]:
        listed[info["run"]] |= info
    assert len(listed) == len(ALL)
    check_list(listed.values())

    sql = recipes("sql", "--")
    duckdb.sql(sql.pop("Tables"))
    assert set(sql) == set(CHECKS), "docs/dataset.md has other recipes for DuckDB than are checked"
    for title, statement in sql.items():
        CHECKS[title](duckdb.sql(statement).fetchall())
    python = recipes("python", "#")
    tables = python.pop("Tables")
    assert python and set(python) <= set(CHECKS), "docs/dataset.md has other recipes for polars than are checked"
    for title, code in python.items():
        names = {}
        exec(tables + code, names)
        CHECKS[title](names["result"].rows())
    # Of a run without samples, Heapline tells how much may have been missed; the notebook does not.
    for info in filter(lambda info: info["sampled_blocks"], listed.values()):
        check_notebook(info, Path(folder))
print(f"dataset: {len(sql)} recipes for DuckDB, {len(python)} for polars, and the notebook: ok")
