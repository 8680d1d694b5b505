import assert from "node:assert/strict";
import { test } from "node:test";
import { address, question } from "../src/api/question";

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
