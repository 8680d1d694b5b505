// Single blocks.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cells, chosen, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

/** Lines of `heapline blocks` that are blocks, as cells. */
function printedBlocks(text) {
  return [
    ...text.matchAll(/^ +(\S+ \S+) {2,}(\S+ \S+) {2,}(\S+ \S+) {2,}((?:> )?\S+ \S+) {2,}(.*?) {2,}(\d+) {2}/gm),
  ].map(([, ...parts]) => parts.join(" | "));
}

async function shownBlocks(page, count) {
  const columns = await Promise.all([1, 2, 3, 4, 5, 6].map((place) => cells(page, place)));
  return columns[0].slice(0, count).map((_, k) => columns.map((column) => column[k]).join(" | "));
}

export const blockTests = [
  [
    "blocks are those of heapline blocks, in each of its orders",
    async ({ page, url, heapline, trace }) => {
      for (const [sort, title] of [
        ["size", "Size"],
        ["weight", "Represents"],
        ["birth", "Allocated at"],
        ["age", "Lifetime"],
      ]) {
        await open(page, url, "view=blocks&live=all&where=size+%3C+100w");
        await page.getByRole("button", { name: title }).click();
        await settled(page);
        const text = heapline("blocks", trace(MIX), "--where", "size < 100w", "--sort", sort, "--rows", "12");
        const expected = printedBlocks(text);
        assert.equal(expected.length, 12, text);
        assert.deepEqual(await shownBlocks(page, 12), expected, sort);
      }
      await page.getByRole("button", { name: "Copy as command" }).click();
      assert.match(
        await page.evaluate(() => navigator.clipboard.readText()),
        /^heapline blocks \S+ --where 'size < 100w' --sort age --rows 500$/,
      );
    },
  ],
  [
    "blocks are those of the whole run until a moment is chosen, and the page says so",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=flame");
      await page.keyboard.press("7");
      await settled(page);
      const blocks = async (...scope) => {
        const { rows, hidden_rows } = heapline("blocks", trace(MIX), ...scope, "--rows", "500", "--json");
        assert.deepEqual(await shownBlocks(page, 10), printedBlocks(heapline("blocks", trace(MIX), ...scope)));
        return `${(rows.length + hidden_rows).toLocaleString("en")} sampled blocks`;
      };
      const said = () => page.locator(".toolbar .muted").textContent();
      assert.ok((await said()).includes(`${await blocks()} of the whole run, which`));
      assert.equal(await page.locator(".tile[aria-checked=true] .tile-name").textContent(), "Allocated");
      await page.keyboard.press("p");
      await settled(page);
      assert.ok((await said()).includes(`${await blocks("--live", "peak")} live at the peak, which`));
      await page.keyboard.press("1");
      await page.keyboard.press("7");
      await settled(page);
      assert.match(await said(), /live at the peak/, "as chosen");
    },
  ],
  [
    "a block has its stack, and a frame leads to the flame graph",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=flame");
      await page.keyboard.press("7");
      await settled(page);
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      const report = heapline("blocks", trace(MIX), "--rows", "2", "--json");
      const names = () => page.locator(".block-frame .name-text").allTextContents();
      const stack = report.rows[1].stack.map(({ name }) => name);
      assert.deepEqual(await names(), stack);
      await page.keyboard.press("Escape");
      assert.equal(await page.locator(".block-details").count(), 0);
      await page.locator(".rows-body .row").nth(1).click();
      assert.deepEqual(await names(), stack);
      await page.locator(".block-frame").last().click();
      await settled(page);
      assert.deepEqual([await chosen(page, "view"), await chosen(page, "focus")], ["flame", stack.at(-1)]);
    },
  ],
  [
    "only the visible blocks are in the document, and all can be scrolled to",
    async ({ page, url }) => {
      await open(page, url, "view=blocks&live=all");
      assert.match(await page.locator(".toolbar").textContent(), /The first 500 of [\d,]+ sampled blocks/);
      const rows = page.locator(".block-box .rows-body .row");
      assert.ok((await rows.count()) < 100);
      await page.locator(".block-box .rows").evaluate((box) => box.scrollTo(0, box.scrollHeight));
      await page.locator('.block-box .row[aria-rowindex="500"]').waitFor();
      assert.ok((await rows.count()) < 100);
    },
  ],
  [
    "a report file has the largest blocks, and sorts them",
    async ({ page, heapline, trace, scratch }) => {
      const file = join(scratch, "blocks.html");
      heapline("report", trace(MIX), "-o", file);
      await page.context().setOffline(true);
      await open(page, pathToFileURL(file).href, "view=blocks&live=end");
      const text = heapline("blocks", trace(MIX), "--where", "live at end", "--rows", "10");
      assert.deepEqual(await shownBlocks(page, 10), printedBlocks(text));
      await page.getByRole("button", { name: "Allocated at" }).click();
      const largest = heapline("blocks", trace(MIX), "--where", "live at end", "--rows", "100", "--json");
      const earliest = largest.rows.toSorted((a, b) => a.allocated - b.allocated || a.number - b.number);
      await page.locator(".rows-body .row").first().click();
      assert.deepEqual(
        await page.locator(".block-frame .name-text").allTextContents(),
        earliest[0].stack.map(({ name }) => name),
      );
    },
  ],
];
