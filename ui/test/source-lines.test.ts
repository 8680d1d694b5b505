import assert from "node:assert/strict";
import { test } from "node:test";
import type { LineMemory, SourceLine } from "../src/api/types";
import { editorLink, largestLine, neighbour } from "../src/views/source-lines";

function line(number: number, bytes: number): SourceLine {
  const totals = { allocated: { bytes: { value: bytes } } };
  const memory = bytes > 0 ? ({ own: totals, inclusive: totals, is_noise: false } as unknown as LineMemory) : null;
  return { line: number, text: "", memory };
}

const lines = [line(1, 0), line(2, 10), line(3, 0), line(4, 30), line(5, 20), line(6, 0)];

test("the view begins at the line with most memory of what was asked for", () => {
  assert.equal(largestLine({ lines, focus: [] }), 4);
  assert.equal(largestLine({ lines, focus: [2, 5] }), 5);
  assert.equal(largestLine({ lines, focus: [6] }), 6);
  assert.equal(largestLine({ lines: [], focus: [] }), null);
});

test("steps go to lines with memory only", () => {
  assert.equal(neighbour(lines, 2, 1), 4);
  assert.equal(neighbour(lines, 3, -1), 2);
  assert.equal(neighbour(lines, 5, 1), null);
  assert.equal(neighbour(lines, null, 1), 2);
});

test("links to an editor have the file and the line, encoded", () => {
  assert.equal(editorLink("vscode://file/{file}:{line}", "/a b/c.ml", 7), "vscode://file/a%20b/c.ml:7");
  assert.equal(editorLink("x://{file}", "/a", 1), "x:///a");
  assert.equal(
    editorLink("idea://open?file={file}&line={line}", "/a?b#c&d", 2),
    "idea://open?file=/a%3Fb%23c%26d&line=2",
  );
  assert.equal(editorLink("e:{file}", "$&/{line}", 3), "e:%24%26/%7Bline%7D");
});
