import assert from "node:assert/strict";
import { test } from "node:test";
import type { BlockRow } from "../src/api/types";
import { inOrder } from "../src/views/block-rows";

function block(number: number, size: number, weight: number, allocated: number, lifetime: number): BlockRow {
  const bytes = { value: weight, error: 0, low: weight, high: weight, samples: 1 };
  return {
    number,
    size,
    bytes,
    blocks: bytes,
    samples: 1,
    sampled_blocks: 1,
    heap: "minor",
    domain: 0,
    allocated,
    promoted: null,
    collected: null,
    lifetime,
    is_live: true,
    stack: [],
  };
}

test("blocks of a report file are sorted as the command does, equal ones in the order of the trace", () => {
  const rows = [block(3, 8, 100, 0.3, 1), block(1, 8, 300, 0.1, 2), block(2, 16, 200, 0.2, 2)];
  const numbers = (sort: Parameters<typeof inOrder>[1]) => inOrder(rows, sort).map((row) => row.number);
  assert.deepEqual(numbers("size"), [2, 1, 3]);
  assert.deepEqual(numbers("weight"), [1, 2, 3]);
  assert.deepEqual(numbers("birth"), [1, 2, 3]);
  assert.deepEqual(numbers("age"), [1, 2, 3]);
});
