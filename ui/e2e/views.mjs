// The page with a server.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  assertHeadline,
  brush,
  cells,
  chosen,
  flamePoint,
  headline,
  nameAt,
  open,
  settled,
  timelinePoint,
} from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const viewTests = [
  [
    "the numbers on top are those of heapline summary",
    async ({ page, url, heapline, trace }) => {
      await open(page, url);
      await assertHeadline(page, heapline("summary", trace(MIX)));
      assert.match(await page.title(), /mix53\.exe/);
    },
  ],
  [
    "nothing is asked twice, and what comes first is asked before the trace is read",
    async ({ page, url }) => {
      const asked = [];
      page.on("request", (request) => {
        const report = /\/api\/v1\/(\w+)/.exec(request.url())?.[1];
        if (report && report !== "status") asked.push(report);
      });
      await open(page, url);
      assert.deepEqual(asked.sort(), ["flame", "info", "series", "summary"]);
    },
  ],
  [
    "when the trace has grown, everything on the screen is asked again",
    async ({ page, url }) => {
      const asked = [];
      let epoch = 0;
      await page.route("**/api/v1/**", async (route) => {
        asked.push(/\/api\/v1\/(\w+)/.exec(route.request().url())[1]);
        const response = await route.fetch();
        await route.fulfill({ response, headers: { ...response.headers(), "heapline-epoch": String(epoch) } });
      });
      await open(page, url, "live=all");
      asked.length = 0;
      epoch = 1;
      await page.keyboard.press("2");
      await page.locator(".rows-body .row").first().waitFor();
      await settled(page);
      assert.deepEqual([...new Set(asked)].sort(), ["hotspots", "info", "series", "summary"]);
      asked.length = 0;
      await page.keyboard.press("1");
      await page.locator(".flame-box").waitFor();
      await settled(page);
      assert.deepEqual(asked, ["flame"], "what was kept is of the older state");
    },
  ],
  [
    "the table has the rows of heapline hotspots",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table");
      const report = heapline("hotspots", trace(MIX), "--where", "live at peak", "--rows", "1000", "--json");
      const names = await page.locator(".rows-body .row .name").allTextContents();
      assert.deepEqual(
        names,
        report.rows.map((row) => row.label.name),
      );
      const percents = (await cells(page, 1)).map((text) => /[\d.]+ %$/.exec(text)?.[0]);
      const total = report.total.allocated.bytes.value;
      assert.deepEqual(
        percents,
        report.rows.map((row) => `${((100 * row.allocated.bytes.value) / total).toFixed(1)} %`),
      );
    },
  ],
  [
    "the table sorts by any column and filters as one types",
    async ({ page, url }) => {
      await open(page, url, "view=table&live=all");
      await page.getByRole("button", { name: "Function" }).click();
      const names = await page.locator(".rows-body .row .name").allTextContents();
      assert.deepEqual(names, [...names].sort());
      await page.keyboard.press("/");
      await page.keyboard.type("map");
      const filtered = await page.locator(".rows-body .row .name").allTextContents();
      assert.ok(filtered.length > 1 && filtered.every((name) => /map/i.test(name)));
    },
  ],
  [
    "brushing the timeline filters everything",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all");
      const before = await headline(page);
      await brush(page, 0.25, 0.5);
      assert.notDeepEqual(await headline(page), before);
      const [from, to] = (await chosen(page, "window")).split("..");
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", `allocated in ${from}s..${to}s`));
      await page.keyboard.press("2");
      await settled(page);
      const report = heapline("hotspots", trace(MIX), "--where", `allocated in ${from}s..${to}s`, "--json");
      assert.equal(await page.locator(".rows-body .row .name").first().textContent(), report.rows[0].label.name);
      await page.getByRole("button", { name: /Remove allocated in/ }).click();
      await settled(page);
      assert.deepEqual(await headline(page), before);
    },
  ],
  [
    "the marks and the axis of the timeline choose the moment",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.locator(".timeline-mark", { hasText: "end" }).click();
      assert.equal(await chosen(page, "live"), "end");
      await page.mouse.click(...(await timelinePoint(page, 0.5, 0.97)));
      assert.ok(Math.abs(Number(await chosen(page, "live")) - 0.041921 / 2) < 0.001);
      await page.locator(".timeline-mark", { hasText: "peak" }).click();
      assert.equal(await chosen(page, "live"), null);
    },
  ],
  [
    "the timeline reads out what is pointed at",
    async ({ page, url }) => {
      await open(page, url);
      await page.mouse.move(...(await timelinePoint(page, 0.68, 0.6)));
      assert.match(await page.locator(".readout-head").textContent(), /ms.*MiB/);
      assert.ok((await page.locator(".readout tr").count()) > 3);
    },
  ],
  [
    "a layer splits into its callers, and breadcrumbs lead back",
    async ({ page, url }) => {
      await open(page, url);
      await page.locator(".layers button", { hasText: "Stdlib.Map.Make.bal" }).click();
      await settled(page);
      assert.equal(await chosen(page, "callers"), "Stdlib.Map.Make.bal");
      const callers = await page.locator(".layers button").allTextContents();
      assert.ok(
        callers.some((name) => name.includes("Map.Make.add")),
        callers.join(),
      );
      await page.locator(".crumbs button", { hasText: "all" }).click();
      await settled(page);
      assert.equal(await chosen(page, "callers"), null);
    },
  ],
  [
    "a box says what heapline tree says of it",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=end");
      const name = await nameAt(page, 2, 0.1);
      const tree = heapline("tree", trace(MIX), "--live", "end", "--min", "0.1%", "--json");
      const node = tree.nodes.find((node) => node.depth === 1 && node.label.name === name);
      const tip = await page.locator(".frame-tip").innerText();
      const share = ((100 * node.total.bytes.value) / tree.total.bytes.value).toFixed(1);
      assert.ok(tip.includes(` ${share} %`), `${share} in ${tip}`);
      assert.match(tip, new RegExp(`Samples\\s+${node.total.samples.toLocaleString("en-US")}$`, "m"));
    },
  ],
  [
    "a click zooms, Escape and the back button come back",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      assert.equal(await nameAt(page, 1, 0.5), "Mix");
      const name = await nameAt(page, 2, 0.1);
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)));
      assert.notEqual(await chosen(page, "node"), null);
      await page.waitForTimeout(300);
      assert.equal(await nameAt(page, 2, 0.95), name);
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "node"), null);
      await page.goBack();
      assert.notEqual(await chosen(page, "node"), null);
    },
  ],
  [
    "a search says how much it found",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.keyboard.press("/");
      await page.keyboard.type("Map.Make");
      const found = await page.locator(".found").textContent();
      // Everything inside of Stdlib.Map.Make.
      const share = Number(/^([\d.]+) %/.exec(found)?.[1]);
      assert.ok(share > 30 && share < 36, found);
      await page.getByRole("searchbox").fill("no such thing");
      assert.equal(await page.locator(".found").textContent(), "nothing found");
      // All that was typed is undone together.
      await page.goBack();
      assert.equal(await chosen(page, "search"), null);
      assert.equal(await chosen(page, "live"), "all");
    },
  ],
  [
    "the menu of a function focuses on it, hides it, and is undone",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all");
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)), { button: "right" });
      const name = await page.locator(".menu-title").textContent();
      await page.getByRole("menuitem", { name: /^Focus: / }).click();
      await settled(page);
      assert.equal(await chosen(page, "focus"), name);
      const tree = heapline("tree", trace(MIX), "--focus", name, "--json");
      const share = ((100 * tree.focus_total.bytes.value) / tree.total.bytes.value).toFixed(1);
      assert.match(await page.locator(".transforms").textContent(), new RegExp(`${share} % of all`));
      await page.keyboard.press("u");
      await settled(page);
      assert.equal(await chosen(page, "focus"), null);
      await page.mouse.move(...(await flamePoint(page, 2, 0.1)));
      await page.keyboard.press("h");
      await settled(page);
      assert.equal(await chosen(page, "hide"), name);
      assert.notEqual(await nameAt(page, 2, 0.1), name);
    },
  ],
  [
    "a filter restricts everything, and the command gives the same numbers",
    async ({ page, url, heapline, trace, expectErrors }) => {
      await open(page, url, "live=all");
      await page.keyboard.press("w");
      await page.keyboard.type('inside "Mix.words" and lifetime > 2ms');
      await page.keyboard.press("Enter");
      await settled(page);
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", 'inside "Mix.words" and lifetime > 2ms'));
      await page.keyboard.press("Escape");
      await page.keyboard.press("2");
      await settled(page);
      await page.getByRole("button", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      const report = JSON.parse(shell(`${command} --json`));
      const names = await page.locator(".rows-body .row .name").allTextContents();
      assert.deepEqual(
        names,
        report.rows.map((row) => row.label.name),
      );
      // What is half typed is asked for, too.
      expectErrors(/400/);
    },
  ],
  [
    "the timeline has its command",
    async ({ page, url }) => {
      await open(page, url, "measure=allocated-bytes&split=module");
      await page.mouse.click(...(await timelinePoint(page, 0.5)), { button: "right" });
      await page.getByRole("menuitem", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      const series = JSON.parse(shell(`${command} --json`));
      assert.equal(series.measure, "allocated-bytes");
      assert.ok(series.groups.some((group) => group.label.name === "Mix"));
    },
  ],
  [
    "a filter is completed, with names of the trace",
    async ({ page, url, expectErrors }) => {
      await open(page, url);
      await page.keyboard.press("w");
      await page.keyboard.type("lif");
      // Earlier lists have more.
      await page.locator(".completions li:only-child", { hasText: "lifetime" }).waitFor();
      await page.keyboard.press("Tab");
      assert.equal(await page.locator(".filter-input").inputValue(), "lifetime ");
      // Tab waits for the suggestions about what was typed.
      await page.keyboard.press("Control+a");
      await page.keyboard.type("hea");
      await page.keyboard.press("Tab");
      await page.waitForFunction(() => document.querySelector(".filter-input")?.value === "heap ");
      await page.locator(".filter-input").fill("inside Mix.lea");
      await page.locator(".completions li", { hasText: "Mix.leak_some" }).waitFor();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator(".filter-input").inputValue(), 'inside "Mix.leak_some" ');
      expectErrors(/400/);
    },
  ],
  [
    "a mistake in a filter is shown where it is",
    async ({ page, url, expectErrors }) => {
      await open(page, url);
      const before = await headline(page);
      await page.keyboard.press("w");
      await page.keyboard.type("live at peak and lifetim > 2s");
      await page.keyboard.press("Enter");
      assert.equal(await page.locator(".filter-error mark").textContent(), "lifetim");
      assert.match(await page.locator(".filter-error").textContent(), /did you mean `lifetime`/);
      assert.deepEqual(await headline(page), before);
      expectErrors(/400/);
    },
  ],
  [
    "the heat map and the histograms filter",
    async ({ page, url }) => {
      await open(page, url, "view=lifetimes&live=all");
      await page.locator(".heat").first().click();
      await settled(page);
      assert.match(await chosen(page, "where"), /^lifetime in /);
      assert.notEqual(await chosen(page, "window"), null);
      await page.locator(".bin.is-active").last().click();
      await settled(page);
      assert.match(await chosen(page, "where"), / and size in /);
    },
  ],
  [
    "two windows are compared as heapline diff does",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=compare");
      await page.getByRole("button", { name: "First half" }).click();
      await settled(page);
      const [before, after] = [await chosen(page, "before"), await chosen(page, "after")];
      const window = (text) =>
        text
          .split("..")
          .map((t) => `${t}s`)
          .join("..");
      const report = heapline(
        "diff",
        trace(MIX),
        "--window",
        window(before),
        "--window",
        window(after),
        "--rows",
        "200",
        "--json",
      );
      const names = await page.locator(".diff .name").allTextContents();
      assert.deepEqual(
        names,
        report.rows.map((row) => row.label.name),
      );
      assert.equal(
        await page.locator(".diff .verdict.is-real").count(),
        report.rows.filter((row) => row.is_real).length,
      );
    },
  ],
  [
    "another trace is compared if there is one",
    async ({ page, serve, heapline, trace }) => {
      const old = trace("mix-ocaml413/trace.ctf");
      const url = await serve(trace(MIX), "--against", old);
      await open(page, url, "view=compare&of=end");
      const report = heapline("diff", old, trace(MIX), "--of", "end", "--rows", "200", "--json");
      await page.locator(".diff .name").first().waitFor();
      const names = await page.locator(".diff .name").allTextContents();
      assert.deepEqual(
        names,
        report.rows.map((row) => row.label.name),
      );
    },
  ],
  [
    "leaks are those of heapline leaks",
    async ({ page, serve, heapline, trace }) => {
      const url = await serve(trace("odd/peakend.ctf"));
      await open(page, url, "view=leaks");
      const report = heapline("leaks", trace("odd/peakend.ctf"), "--json");
      assert.equal(
        await page.locator(".leak .name").first().textContent(),
        report.rows[0].label.name + report.rows[0].label.place,
      );
      assert.equal(await page.locator(".leak .badge").first().textContent(), report.rows[0].shape);
    },
  ],
  [
    "leaks say what holds them, if a snapshot tells",
    async ({ page, serve, trace }) => {
      const url = await serve(trace("odd/peakend.ctf"));
      await open(page, url, "view=leaks");
      assert.equal(await page.locator(".held-by").count(), 0);
      await page.route(/\/leaks/, async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        const [row] = json.rows;
        const half = { ...row.retained.bytes, value: row.retained.bytes.value / 2 };
        row.held_by = [{ name: "Cache.table", bytes: half }];
        await route.fulfill({ response, json: { ...json, snapshot: "run.heap" } });
      });
      await page.reload();
      await page.locator(".held-by").waitFor();
      assert.equal(await page.locator(".held-by").first().textContent(), "Cache.table (50.0 %)");
      assert.equal(await page.locator(".leak-head [role=columnheader]").last().textContent(), "Held by");
    },
  ],
  [
    "dark is remembered",
    async ({ page, url }) => {
      await open(page, url);
      const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      const light = await ground();
      await page.keyboard.press("d");
      const dark = await ground();
      assert.notEqual(dark, light);
      await page.reload();
      await settled(page);
      assert.equal(await ground(), dark);
    },
  ],
  [
    "reloading keeps everything",
    async ({ page, url }) => {
      const hash =
        "view=flame&live=end&where=size+%3C+1000w&window=0.005..0.04&measure=allocated-bytes&split=module&focus=Mix.leak_some&search=string&colour=heap&shape=flame&unit=blocks";
      await open(page, url, hash);
      const shown = () => page.evaluate(() => document.querySelector("main").innerText);
      const before = await shown();
      const address = page.url();
      await page.reload();
      await settled(page);
      assert.equal(await shown(), before);
      assert.equal(page.url(), address);
    },
  ],
  [
    "everything can be done with the keyboard",
    async ({ page, url }) => {
      await open(page, url);
      await page.keyboard.press("?");
      await page.locator("dialog[open]").waitFor();
      await page.keyboard.press("Escape");
      await page.locator("dialog[open]").waitFor({ state: "detached" });
      await page.keyboard.press("a");
      assert.equal(await chosen(page, "live"), "all");
      await settled(page);
      await page.locator(".plot canvas").focus();
      await page.keyboard.press("Shift+ArrowLeft");
      await page.keyboard.press("]");
      assert.notEqual(await chosen(page, "window"), null);
      await page.keyboard.press("2");
      await settled(page);
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      const name = await page.locator(".row.is-selected .name").textContent();
      await page.keyboard.press("Enter");
      await settled(page);
      assert.equal(await chosen(page, "view"), null);
      assert.equal(await chosen(page, "focus"), name);
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "focus"), null);
      await settled(page);
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      assert.notEqual(await chosen(page, "node"), null);
      await page.keyboard.press("3");
      await settled(page);
      const rows = await page.locator(".rows-body .row").count();
      await page.keyboard.press("*");
      await settled(page);
      assert.ok((await page.locator(".rows-body .row").count()) > rows);
    },
  ],
  [
    "tables are copied as CSV",
    async ({ page, url }) => {
      await open(page, url, "view=table");
      await page.getByRole("button", { name: "Copy", exact: true }).click();
      await page.getByRole("menuitem", { name: "As CSV" }).click();
      const csv = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(csv, /^name,place,own_bytes/);
      assert.equal(csv.trim().split("\n").length, 1 + (await page.locator(".rows-body .row").count()));
    },
  ],
  [
    "empty and damaged traces look right",
    async ({ page, serve, trace }) => {
      await open(page, await serve(trace("odd/empty.ctf")));
      assert.match(await page.locator(".view").textContent(), /Nothing here/);
      for (const view of ["table", "tree", "lifetimes", "leaks"]) {
        await open(page, page.url().split("#")[0], `view=${view}`);
        // Some views ask for more before they know.
        await page.locator("#view", { hasText: /Nothing/ }).waitFor();
      }
      await open(page, await serve(trace("damaged/overwritten.ctf")));
      await page.locator(".badge.is-warning").click();
      assert.match(await page.locator(".damage").textContent(), /986 allocations are known to be lost/);
    },
  ],
  [
    "native programs are not asked about promotions, nor about heaps",
    async ({ page, url, serve, trace, scratch }) => {
      const offered = async (address) => {
        await open(page, address, "view=table&live=all");
        const measures = await page.getByLabel("Measure").locator("option").allTextContents();
        const heads = await page.getByRole("columnheader").allTextContents();
        await page.getByRole("button", { name: "Filter", exact: true }).click();
        const clauses = await page.getByRole("menuitem").allTextContents();
        await page.keyboard.press("Escape");
        await page.keyboard.press("w");
        await page.locator(".completions li").first().waitFor();
        const fields = await page.locator(".completions code").allTextContents();
        return [...measures, ...heads, ...clauses, ...fields].filter((text) => /promot|heap/i.test(text));
      };
      assert.ok((await offered(url)).length >= 8);
      // What follows the sample rate in the header is the size of a word; native programs count in bytes.
      const bytes = await readFile(trace(MIX));
      const rate = Buffer.alloc(8);
      rate.writeDoubleLE(1e-3);
      bytes[bytes.indexOf(rate) + 8] = 8;
      const native = join(scratch, "native.ctf");
      await writeFile(native, bytes);
      assert.deepEqual(await offered(await serve(native)), []);
    },
  ],
  [
    "a file that is not a trace is said to be none",
    async ({ page, serve, trace }) => {
      await page.goto(await serve(trace("README.md")));
      assert.match(await page.locator(".splash-error").textContent(), /not a memtrace trace/);
    },
  ],
  [
    "an edge of the window can be moved",
    async ({ page, url }) => {
      await open(page, url, "live=all&window=0.01..0.02");
      await brush(page, 0.02 / 0.041921, 0.75);
      const [from, to] = (await chosen(page, "window")).split("..").map(Number);
      assert.equal(from, 0.01);
      assert.ok(Math.abs(to - 0.75 * 0.041921) < 0.0005, `${to}`);
    },
  ],
  [
    "stacks of a thousand frames are shown",
    async ({ page, serve, trace }) => {
      await open(page, await serve(trace("odd/deep1000.ctf")), "live=all");
      const box = await page.locator(".flame-scroller").evaluate((element) => element.scrollHeight);
      assert.ok(box > 5000, `${box}`);
    },
  ],
  [
    "no view is an obstacle, in light and in dark",
    async ({ page, url }) => {
      const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const view of ["flame", "table", "tree", "lifetimes", "leaks", "compare"]) {
          await open(page, url, `view=${view}&live=all&where=size+%3C+100w&window=0.01..0.03`);
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run());
          const found = violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
          assert.deepEqual(found, [], `${view}, ${colorScheme}`);
        }
      }
    },
  ],
  [
    "nothing sticks out at 800, 1280 and 1920 pixels",
    async ({ page, url }) => {
      for (const width of [800, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        for (const view of ["flame", "table", "tree", "lifetimes", "leaks", "compare"]) {
          await open(page, url, `view=${view}`);
          const overhang = await page.evaluate(
            () => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
          );
          assert.ok(overhang <= 0, `${view} at ${width}: ${overhang} px too wide`);
        }
      }
    },
  ],
];
