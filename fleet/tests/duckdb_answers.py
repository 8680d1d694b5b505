"""Answers the SQL statements on standard input, a JSON array, with DuckDB.

Usage: duckdb_answers.py DATASET
"""

import json
import sys

import duckdb

dataset = sys.argv[1]
database = duckdb.connect()
for table in ["runs", "sites", "blocks", "stacks", "frames"]:
    # The names of folders are escaped; the columns are not.
    files = f"{dataset}/*/*/*/{table}.parquet"
    database.execute(
        f"create view {table} as select * from read_parquet('{files}', hive_partitioning = false)"
    )
answers = []
for statement in json.load(sys.stdin):
    answer = database.execute(statement)
    names = [column[0] for column in answer.description]
    answers.append([dict(zip(names, row, strict=True)) for row in answer.fetchall()])
json.dump(answers, sys.stdout)
