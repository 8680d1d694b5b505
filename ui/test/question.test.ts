import assert from "node:assert/strict";
import { test } from "node:test";
import { address, commandLine, question, shellWord } from "../src/api/question";

test("the same question has the same address, whatever the order of its options", () => {
  const one = question("hotspots", { rows: 1000, by: "site", where: ["live at peak"] });
  const other = question("hotspots", { where: ["live at peak"], by: "site", rows: 1000 });
  assert.equal(address(one), "hotspots?by=site&rows=1000&where=live+at+peak");
  assert.equal(address(other), address(one));
});

test("the order of what is given several times counts", () => {
  assert.equal(address(question("flame", { focus: ["b", "a"] })), "flame?focus=b&focus=a");
});

test("what is empty or off is left out", () => {
  assert.equal(address(question("flame", { by: null, sites: false, focus: [], where: "" })), "flame");
});

test("a command can be pasted into a shell", () => {
  const asked = question("flame", { where: [`inside "it's" and size > 1k`], "bottom-up": true, "max-nodes": 5 });
  assert.equal(
    commandLine(asked, "heapline", "a b.ctf", null),
    `heapline tree 'a b.ctf' --where 'inside "it'\\''s" and size > 1k' --bottom-up`,
  );
});

test("a comparison names the other trace, unless it is of two windows", () => {
  assert.equal(
    commandLine(question("diff", { of: "end" }), "heapline", "new", "old"),
    "heapline diff old new --of end",
  );
  const windows = question("diff", { window: ["0s..1s", "1s..2s"] });
  assert.equal(commandLine(windows, "heapline", "new", "old"), "heapline diff new --window 0s..1s --window 1s..2s");
});

test("words that a shell would change are quoted", () => {
  assert.equal(shellWord("trace.ctf"), "trace.ctf");
  assert.equal(shellWord("0.1%"), "0.1%");
  assert.equal(shellWord("$HOME"), "'$HOME'");
  assert.equal(shellWord("-rf"), "'-rf'");
  assert.equal(shellWord(""), "''");
});
