import assert from "node:assert/strict";
import { test } from "node:test";
import { moduleOf, NAME_TONES, nameColour, nameNumber, reserveColours } from "../src/colours";
import { colourNumbers, palette } from "../src/flame/colours";
import { layerColours } from "../src/timeline/layers";
import { nodesOf } from "./tree";

test("modules are those of the engine", () => {
  for (const [name, module] of [
    ["Stdlib.List.map", "Stdlib.List"],
    ["M.Make.f.(fun)", "M.Make"],
    ["Dune.exe.Main.run", "Dune.exe.Main"],
    ["Main", "Main"],
    ["caml_alloc", "(no module)"],
    ["alloc::vec::Vec<T>::push", "alloc::vec"],
    ["", "(no module)"],
  ] as const)
    assert.equal(moduleOf(name), module, name);
});

test("a function has one colour in the flame graph, the timeline and the lists", () => {
  const names = ["Mix.big", "Mix.cached", "Stdlib.Map.Make.bal", "alloc::vec::Vec<T>::push", "main"];
  const groups = names.map((name) => ({ label: { name }, is_other: false, values: [], low: [], high: [] }));
  const nodes = nodesOf(names.map((name) => [name, 1, []]));
  for (const isDark of [false, true]) {
    const layers = layerColours(groups, { split: "function", callers: [] }, isDark).fills;
    const boxes = [...colourNumbers(nodes, "module", "function", 1)].map((k) => palette("module", isDark).fills[k]);
    assert.deepEqual(boxes, layers);
    assert.deepEqual(
      names.map((name) => nameColour({ name }, "site", isDark)),
      layers,
    );
    assert.equal(layers[0]?.split(" ")[2], layers[1]?.split(" ")[2], "a module has one hue");
  }
});

test("the callers of a line have the colours of functions", () => {
  const groups = [{ label: { name: "Mix.big" }, is_other: false, values: [], low: [], high: [] }];
  const [fill] = layerColours(groups, { split: "site", callers: ["Mix.f"] }, false).fills;
  assert.equal(fill, nameColour({ name: "Mix.big" }, "function", false));
});

test("a module and its functions have the same hue", () => {
  const hue = (number: number) => NAME_TONES[number - 1]?.[1];
  assert.equal(
    hue(nameNumber({ name: "Stdlib.Map.Make" }, "module")),
    hue(nameNumber({ name: "Stdlib.Map.Make.add" }, "function")),
  );
});

test("the largest functions can be told apart, and keep their colours", () => {
  const names = Array.from({ length: 10 }, (_, k) => `Module${k % 8}.f${k}`);
  const tone = (name: string) => NAME_TONES[nameNumber({ name }, "function") - 1] as (typeof NAME_TONES)[number];
  reserveColours(names.map((name) => ({ name })));
  const hues = names.slice(0, 8).map((name) => tone(name)[1]);
  for (const [i, a] of hues.entries())
    for (const b of hues.slice(i + 1)) {
      const between = Math.abs(a - b);
      assert.ok(Math.min(between, 360 - between) >= 24, `${hues}`);
    }
  // Functions of a module have its hue in other shades.
  assert.equal(tone("Module0.f0")[1], tone("Module0.f8")[1]);
  assert.notDeepEqual(tone("Module0.f0"), tone("Module0.f8"));
  const before = names.map(tone);
  reserveColours([{ name: "Other.f" }, ...names.map((name) => ({ name }))]);
  assert.deepEqual(names.map(tone), before);
});
