import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { address, commandLine, question, type Report, shellWord } from "../src/api/question";

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
  assert.equal(address(question("flame", { by: null, sites: false, focus: [], where: [], depth: "" })), "flame");
});

test("what has its default value is left out", () => {
  assert.equal(
    address(question("hotspots", { by: "function", rows: 20, estimator: "count" })),
    "hotspots?estimator=count",
  );
  assert.equal(address(question("leaks", { by: "function" })), "leaks?by=function");
});

test("commands are those of the engine", () => {
  const cases = JSON.parse(readFileSync("test/commands.json", "utf8")) as {
    report: Report;
    options: [string, string][];
    against: string | null;
    command: string;
  }[];
  assert.ok(cases.length > 5);
  for (const { report, options, against, command } of cases) {
    assert.equal(commandLine({ command: report, options }, "a b.ctf", against), command);
  }
});

test("names with a prime can be pasted into a shell", () => {
  const asked = question("flame", { where: [`inside "it's" and size > 1k`] });
  assert.equal(commandLine(asked, "a.ctf", null), `heapline tree a.ctf --where 'inside "it'\\''s" and size > 1k'`);
});

test("words that a shell would change are quoted", () => {
  assert.equal(shellWord("trace.ctf"), "trace.ctf");
  assert.equal(shellWord("0.1%"), "0.1%");
  assert.equal(shellWord("$HOME"), "'$HOME'");
  assert.equal(shellWord(""), "''");
});
