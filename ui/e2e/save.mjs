// Saving: pictures, the selection in the formats of other tools, report files.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { assertHeadline, chosen, eventually, open, settled } from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

/** Opens the menu and gives the texts of its items. */
async function menu(page) {
  await page.getByRole("button", { name: "Save" }).click();
  return page.getByRole("menuitem").allTextContents();
}

/** Saves by an item of the menu. */
async function save(page, item) {
  await menu(page);
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: item, exact: true }).click(),
  ]);
  return { name: file.suggestedFilename(), content: await readFile(await file.path()) };
}

/** The command of an item of the menu. */
async function copied(page, item) {
  // So that neither an earlier command nor its notice is taken for this one.
  await page.evaluate(() => navigator.clipboard.writeText(""));
  await menu(page);
  await page.getByRole("menuitem", { name: "Copy as command …" }).click();
  await page.getByRole("menuitem", { name: item, exact: true }).click();
  return eventually(async () => {
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.notEqual(text, "", `${item}: nothing was copied`);
    return text;
  });
}

/** The bytes that a command writes. */
async function written(command, scratch, name) {
  const path = join(scratch, `by-command-${name}`);
  shell(`${command.replace(/ -o \S+$/, "")} --force -o ${path}`);
  return readFile(path);
}

const FORMATS = [
  ["Selection for pprof", "For pprof", "trace.pb.gz"],
  ["Selection for speedscope", "For speedscope", "trace.speedscope.json"],
  ["Selection for Firefox Profiler", "For Firefox Profiler", "trace.firefox.json"],
  ["Selection for Perfetto", "For Perfetto", "trace.perfetto.json"],
  ["Selection as collapsed stacks", "For collapsed stacks", "trace.folded"],
];

const SELECTIONS = [
  "",
  "live=all",
  "live=all&hide=Stdlib.Map.*&where=size+%3E+2w",
  "live=end&ownCode",
  "live=0.02&window=0..0.03&windowOf=live",
  "live=all&lists=all&callers=Stdlib.Map.Make.bal&callers=Stdlib.Map.Make.add&lines&recursion",
  "live=all&callers=Mix.words",
  "view=leaks&estimator=count",
];

export const saveTests = [
  [
    "what is saved for other tools is what heapline export writes",
    async ({ page, url, scratch }) => {
      for (const hash of SELECTIONS) {
        await open(page, url, hash);
        for (const [item, command, name] of FORMATS) {
          const saved = await save(page, item);
          assert.equal(saved.name, name);
          const line = await copied(page, command);
          assert.match(line, /^heapline export /);
          const expected = await written(line, scratch, name);
          assert.ok(expected.length > 100, line);
          assert.ok(saved.content.equals(expected), `${item} of ${hash}: ${line}`);
        }
      }
    },
  ],
  [
    "collapsed stacks of the page add up to the total",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all&ownCode");
      const { content } = await save(page, "Selection as collapsed stacks");
      const lines = content.toString().trim().split("\n");
      assert.ok(!lines.some((line) => line.includes("Stdlib.")), "libraries are left out");
      const sum = lines.reduce((sum, line) => sum + Number(/ (\d+)$/.exec(line)[1]), 0);
      const total = heapline("summary", trace(MIX), "--json").allocated.bytes.value;
      assert.ok(Math.abs(sum / total - 1) < 1e-3, `${sum} of ${total}`);
    },
  ],
  [
    "pictures are saved as SVG and PNG, light also in the dark",
    async ({ page, url }) => {
      for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        await open(page, url, "live=all&where=size+%3E+2w");
        const total = (await page.locator(".tile-value").first().textContent()).trim();
        const flame = await save(page, "Flame graph as SVG");
        assert.equal(flame.name, "trace-flame.svg");
        const text = flame.content.toString();
        for (const part of [`Allocated: ${total}`, "size &gt; 2w", ">Mix.big<", 'fill="#ffffff"'])
          assert.ok(text.includes(part), part);
        const timeline = (await save(page, "Timeline as SVG")).content.toString();
        for (const part of ["Live bytes over time: at most", " ± ", ">Mix.cached<"])
          assert.ok(timeline.includes(part), part);
        const isValid = await page.evaluate(
          (files) =>
            files.every((file) => !new DOMParser().parseFromString(file, "image/svg+xml").querySelector("parsererror")),
          [text, timeline],
        );
        assert.ok(isValid);
        for (const item of ["Flame graph as PNG", "Timeline as PNG"]) {
          const { name, content } = await save(page, item);
          assert.match(name, /^trace-(flame|timeline)\.png$/);
          assert.equal(content.toString("latin1", 1, 4), "PNG");
          assert.equal(content.readUInt32BE(16), 2400);
        }
      }
    },
  ],
  [
    "a picture that is not on the screen is not offered",
    async ({ page, url }) => {
      await open(page, url, "view=table");
      assert.ok(!(await menu(page)).some((text) => text.includes("Flame graph")));
      await page.keyboard.press("Escape");
      await open(page, url, "folded");
      // The page was settled before it had begun to change.
      await page.locator("#view canvas").first().waitFor();
      await settled(page);
      await page.keyboard.press("Escape");
      await page.keyboard.press("S");
      const items = await page.getByRole("menuitem").allTextContents();
      assert.ok(items.some((text) => text.includes("Flame graph")) && !items.some((text) => text.includes("Timeline")));
    },
  ],
  [
    "a report file of the state of the page opens in it, and offers pictures only",
    async ({ page, url, heapline, trace, scratch }) => {
      await open(page, url, "view=table&live=all&by=site&where=promoted");
      const saved = await save(page, "Report file of this state");
      await page.locator(".notice", { hasText: "no filters" }).waitFor();
      assert.equal(saved.name, "trace.html");
      const line = await copied(page, "Report file");
      assert.match(line, /^heapline report .* --state 'view=table&live=all&by=site' -o trace\.html$/);
      assert.ok(saved.content.equals(await written(line, scratch, saved.name)));
      assert.ok(!saved.content.includes(trace("")), "the folder of the trace is not in it");
      await page.context().setOffline(true);
      const file = `file://${join(scratch, `by-command-${saved.name}`)}`;
      await page.goto(file);
      await settled(page);
      await assertHeadline(page, heapline("summary", trace(MIX)));
      assert.equal(await chosen(page, "view"), "table");
      assert.equal(await chosen(page, "by"), "site");
      assert.deepEqual(
        (await menu(page)).map((text) => text.trim()),
        ["Timeline as SVG", "Timeline as PNG"],
      );
      await page.keyboard.press("Escape");
      await open(page, file, "view=flame");
      const flame = await save(page, "Flame graph as SVG");
      assert.ok(flame.content.toString().includes(">Mix.big<"));
    },
  ],
];
