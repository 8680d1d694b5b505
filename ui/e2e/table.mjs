// The table.

import assert from "node:assert/strict";
import { cells, open, settled } from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const tableTests = [
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
      await open(page, url, "view=table&live=all&lists=all");
      await page.getByRole("button", { name: "Function" }).click();
      await settled(page);
      const names = await page.locator(".rows-body .row .name").allTextContents();
      assert.deepEqual(names, [...names].sort());
      await page.keyboard.press("/");
      await page.keyboard.type("map");
      const filtered = await page.locator(".rows-body .row .name").allTextContents();
      assert.ok(filtered.length > 1 && filtered.every((name) => /map/i.test(name)));
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
    "the table is sorted among all rows by the server, and the command says how",
    async ({ page, url }) => {
      const asked = [];
      page.on("request", (request) => request.url().includes("/hotspots") && asked.push(new URL(request.url())));
      await open(page, url, "view=table&live=all");
      const heads = [
        ["With callees", "inclusive"],
        ["Median life", "lifetime"],
        ["Mean size", "size"],
        ["Promoted", "promoted"],
      ];
      for (const [title, sort] of heads) {
        await page.locator(".row-head").getByRole("button", { name: title }).click();
        await settled(page);
        assert.equal(asked.at(-1).searchParams.get("sort"), sort);
        await page.getByRole("button", { name: "Copy as command" }).click();
        const command = await page.evaluate(() => navigator.clipboard.readText());
        assert.match(command, new RegExp(`--sort ${sort}`));
        const report = JSON.parse(shell(`${command} --json`));
        assert.deepEqual(
          await page.locator(".rows-body .row .name").allTextContents(),
          report.rows.map((row) => row.label.name),
        );
      }
    },
  ],
  [
    "the heading of lifetimes says which blocks they are of",
    async ({ page, url }) => {
      const heads = async () => (await page.locator(".row-head [role=columnheader]").allTextContents()).join("|");
      await open(page, url, "view=table&live=all");
      assert.match(await heads(), /\| ?Median life\| ?Promoted\|/);
      await open(page, url, "view=table&live=peak");
      assert.match(await heads(), /\| ?Life, at peak\| ?Promoted, at peak\|/);
      await page.getByRole("button", { name: "Life, at peak" }).hover();
      await page.locator(".tip", { hasText: "Only of the blocks that are live at the peak" }).waitFor();
      await open(page, url, "view=table&live=0.02");
      assert.match(await heads(), /Life, at 20(\.0)? ms/);
    },
  ],
  [
    "a curve that misses memory of the peak is not shown as empty",
    async ({ page, url }) => {
      await page.route(/\/hotspots/, async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        for (const row of json.rows) row.growth = row.growth.map(() => 0);
        await route.fulfill({ response, json });
      });
      await open(page, url, "view=table&live=peak");
      const curves = await page.locator(".rows-body .cell-spark").allTextContents();
      assert.ok(curves.length > 3 && curves.every((text) => text === "briefly"), curves.join());
    },
  ],
  [
    "the function at the end of a name is never cut off",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 900, height: 700 });
      await page.route(/\/hotspots/, async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        for (const row of json.rows) row.label.name = `${"Outer_module.".repeat(12)}allocate`;
        await route.fulfill({ response, json });
      });
      await open(page, url, "view=table&live=all");
      const cell = page.locator(".rows-body .name").first();
      const [outer, inner] = [
        await cell.boundingBox(),
        await cell.getByText("allocate", { exact: true }).boundingBox(),
      ];
      assert.ok(inner.x + inner.width <= outer.x + outer.width + 0.5, JSON.stringify([outer, inner]));
    },
  ],
  [
    "the line number of a place is never cut off",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 900, height: 700 });
      await page.route(/\/hotspots/, async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        for (const row of json.rows) row.label.place = `a/very/long/path/${"to/a/source/".repeat(12)}file.ml:123:4-5`;
        await route.fulfill({ response, json });
      });
      await open(page, url, "view=table&live=all&by=site");
      const cell = page.locator(".rows-body .name").first();
      const [outer, inner] = [await cell.boundingBox(), await cell.getByText("file.ml:123:4-5").boundingBox()];
      assert.ok(inner.x + inner.width <= outer.x + outer.width + 0.5, JSON.stringify([outer, inner]));
    },
  ],
  [
    "a median that is not known is longer than the oldest block",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table&live=all&by=age");
      const at = (await page.locator(".row-head [role=columnheader]").allTextContents()).findIndex((text) =>
        text.includes("Median life"),
      );
      const shown = (await cells(page, at + 1)).find((text) => text.startsWith(">"));
      const report = heapline("hotspots", trace(MIX), "--by", "age", "--json");
      const { oldest } = report.rows.find((row) => row.lifetime.p50 === null);
      assert.ok(oldest < report.subject.duration);
      assert.equal(shown, `> ${(1000 * oldest).toFixed(1)} ms`);
    },
  ],
];
