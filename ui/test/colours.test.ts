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

/** The relative luminance of a colour as WCAG defines it; `oklch(...)` or `#rrggbb`. */
function luminance(colour: string): number {
  let linear: number[];
  if (colour.startsWith("#")) {
    linear = [1, 3, 5].map((at) => {
      const value = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
  } else {
    const [L = 0, C = 0, h = 0] = colour.slice(6, -1).split(" ").map(Number);
    const [a, b] = [C * Math.cos((h * Math.PI) / 180), C * Math.sin((h * Math.PI) / 180)];
    const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
    linear = [
      4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
      -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
      -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
    ].map((value) => Math.min(1, Math.max(0, value)));
  }
  const [r = 0, g = 0, b = 0] = linear;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(a: string, b: string): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

test("names can be read on all fills, also if they are faded", () => {
  for (const mode of ["module", "heap", "lifetime", "growth", "change"] as const)
    for (const isDark of [false, true]) {
      const { fills, faded, text, fadedText } = palette(mode, isDark);
      for (const fill of fills) assert.ok(contrast(text, fill) >= 4.5, `${mode} ${isDark} ${fill}`);
      for (const fill of faded) assert.ok(contrast(fadedText, fill) >= 4.5, `${mode} ${isDark} ${fill}, faded`);
    }
});

test("the shades of a module can be told apart", () => {
  for (const isDark of [false, true]) {
    const { fills } = palette("module", isDark);
    for (let module = 0; module < 30; module++)
      for (let shade = 1; shade < 4; shade++) {
        const [a, b] = [fills[module * 4 + shade] as string, fills[module * 4 + shade + 1] as string];
        assert.ok(contrast(a, b) >= 1.24, `${isDark} ${a} ${b} ${contrast(a, b)}`);
      }
  }
});
