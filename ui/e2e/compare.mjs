// Leaks and comparisons.

import assert from "node:assert/strict";
import { brush, chosen, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const compareTests = [
  [
    "two windows are compared as heapline diff does",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=compare");
      await page.getByRole("button", { name: "Halves" }).click();
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
        "1000",
        "--json",
      );
      const names = await page.locator(".diff-box .rows-body .name").allTextContents();
      assert.deepEqual(
        names,
        report.rows.map((row) => row.label.name),
      );
      assert.equal(
        await page.locator(".diff-box .verdict.is-real").count(),
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
      const report = heapline("diff", old, trace(MIX), "--of", "end", "--rows", "1000", "--json");
      await page.locator(".diff-box .rows-body .name").first().waitFor();
      const names = await page.locator(".diff-box .rows-body .name").allTextContents();
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
      assert.equal(await page.locator(".leak .badge").first().textContent(), report.rows[0].trend.state);
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
    "leaks follow the window, and are about the end whatever is chosen",
    async ({ page, serve, heapline, trace }) => {
      const file = trace("odd/peakend.ctf");
      const url = await serve(file);
      const { duration } = heapline("info", file, "--json");
      const window = `0..${Number((duration / 2).toFixed(6))}`;
      await open(page, url, `view=leaks&window=${window}&live=all`);
      const [from, to] = window.split("..");
      const report = heapline("leaks", file, "--where", `allocated in ${from}s..${to}s`, "--json");
      assert.equal(await page.locator(".leak:not(.leak-head)").count(), report.rows.length);
      assert.match(await page.locator(".leak-text").textContent(), /^Of what was allocated in 0/);
      assert.equal(await page.locator(".tile[aria-checked=true] .tile-name").textContent(), "Live at the end");
      assert.ok(await page.locator(".tile", { hasText: "Allocated" }).isDisabled());
      await page.keyboard.press("p");
      await page.locator(".notice", { hasText: "live at the end" }).waitFor();
    },
  ],
  [
    "while windows are compared, the timeline shows those, and the tiles choose what is compared",
    async ({ page, url }) => {
      await open(page, url, "view=compare&window=0.01..0.02&live=peak");
      assert.equal(await page.locator(".chip", { hasText: "allocated in" }).count(), 0);
      assert.equal(await page.locator(".tile[aria-checked=true] .tile-name").textContent(), "Allocated");
      assert.equal(await page.locator(".timeline-mark.is-on").count(), 0);
      await page.locator(".tile", { hasText: "Live at the end" }).click();
      await settled(page);
      assert.equal(await chosen(page, "of"), "end");
      await brush(page, 0.6, 0.9);
      assert.notEqual(await chosen(page, "after"), null);
      assert.equal(await chosen(page, "window"), "0.01..0.02");
      await page.keyboard.down("Shift");
      await brush(page, 0.1, 0.3);
      await page.keyboard.up("Shift");
      assert.notEqual(await chosen(page, "before"), null);
    },
  ],
  [
    "changes are sorted, searched and shown in the flame graph",
    async ({ page, url }) => {
      await open(page, url, "view=compare");
      await page.locator(".diff-box .rows-body .row").first().waitFor();
      const names = () => page.locator(".diff-box .rows-body .name").allTextContents();
      const before = await names();
      await page.locator(".row-head").getByRole("button", { name: "Function" }).click();
      assert.deepEqual(await names(), [...before].sort());
      await page.keyboard.press("/");
      await page.keyboard.type("map");
      const found = await names();
      assert.ok(found.length > 0 && found.length < before.length && found.every((name) => /map/i.test(name)));
      await page.locator(".diff-box .rows-body .row").first().click();
      await page.locator("#view").focus();
      await page.keyboard.press("Enter");
      await settled(page);
      assert.equal(await chosen(page, "focus"), found[0]);
    },
  ],
];
