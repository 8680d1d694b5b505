import assert from "node:assert/strict";
import { test } from "node:test";
import { moved, zoomedAround } from "../src/flame/pan";

const ALL = { from: 0, to: 1 };

test("zooming keeps the place under the pointer, and ends with everything", () => {
  const near = zoomedAround(ALL, 0.5, 0.5);
  assert.deepEqual(near, { from: 0.25, to: 0.75 });
  assert.deepEqual(zoomedAround({ from: 0.5, to: 1 }, 0.5, 0.5), { from: 0.5, to: 0.75 });
  assert.equal(zoomedAround({ from: 0.25, to: 0.75 }, 0.5, 4), null);
  assert.ok((zoomedAround(ALL, 0.3, 0)?.to ?? 0) > 0.3, "there is always something to see");
});

test("panning stops at the edges", () => {
  assert.deepEqual(moved({ from: 0.25, to: 0.75 }, 0.125), { from: 0.375, to: 0.875 });
  assert.deepEqual(moved({ from: 0.25, to: 0.75 }, 9), { from: 0.5, to: 1 });
  assert.equal(moved(ALL, 0.5), null);
});
