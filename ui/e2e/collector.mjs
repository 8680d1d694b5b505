// The garbage collector: the band below the timeline, and the view.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assertHeadline, brush, chosen, eventually, open, settled } from "./page.mjs";

const FILE = "generated/collector.ctf";
let served = null;

/** The page of the trace with collections, served once. */
function collector({ serve, trace }) {
  served ??= serve(trace(FILE));
  return served;
}

export const collectorTests = [
  [
    "the collector has the figures of heapline gc",
    async ({ page, serve, heapline, trace }) => {
      await open(page, await collector({ serve, trace }), "view=collector");
      const printed = heapline("gc", trace(FILE)).split("\n");
      assert.equal(await page.locator(".gc-head h2").textContent(), printed[0]);
      assert.equal((await page.locator(".gc-headline").textContent()).trim(), printed[0]);
      const gc = heapline("gc", trace(FILE), "--rows", "20", "--json");
      const words = page.getByRole("region", { name: "Words" });
      const counted = await words
        .getByRole("row", { name: /^Promoted/ })
        .getByRole("cell")
        .nth(1)
        .textContent();
      assert.equal(Number(counted.replaceAll(",", "")), gc.words.promoted);
      const counts = await page
        .getByRole("region", { name: "Kinds" })
        .locator("tbody tr td:nth-child(2)")
        .allTextContents();
      assert.deepEqual(
        counts.map((text) => Number(text.replaceAll(",", ""))),
        [...gc.kinds.map(({ count }) => count), gc.pauses.count],
      );
      assert.equal(await page.locator(".pause").count(), 8);
      await page.getByRole("button", { name: "Show 12 more" }).click();
      assert.equal(await page.locator(".pause").count(), 20);
      const longest = await page.locator(".pause").first().textContent();
      assert.ok(longest.includes(`at ${gc.worst[0].start.toFixed(3)} s`), longest);
      await page.getByRole("button", { name: "Copy as command" }).click();
      assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^heapline gc \S+ --rows 20/);
    },
  ],
  [
    "a pause is selected by a click in the view or on its mark, and deselected again",
    async ({ page, serve, heapline, trace }) => {
      await open(page, await collector({ serve, trace }), "view=collector");
      const { worst } = heapline("gc", trace(FILE), "--rows", "20", "--json");
      await page.locator(".pause").first().click();
      await settled(page);
      const [from, to] = (await chosen(page, "window")).split("..").map(Number);
      assert.ok(Math.abs(from - worst[0].start) <= 1e-6 && Math.abs(to - worst[0].start - worst[0].length) <= 2e-6);
      assert.equal(await page.locator(".pause").count(), 8, "the others stay");
      assert.equal(await page.locator(".pause.is-on").count(), 1);
      assert.equal(await page.locator(".pause-mark.is-on").count(), 1);
      await assertHeadline(page, heapline("summary", trace(FILE), "--where", `live in ${from}s..${to}s`));
      await page.locator(".pause-mark.is-on").click();
      await settled(page);
      assert.equal(await chosen(page, "window"), null);
      // A brushed window has the pauses in it.
      await brush(page, 0.1, 0.3);
      assert.equal(await chosen(page, "windowOf"), null);
      const window = (await chosen(page, "window")).split("..");
      const gc = heapline("gc", trace(FILE), "--window", `${window[0]}s..${window[1]}s`, "--json");
      const text = await page.getByRole("region", { name: "Kinds" }).locator("tr.is-total td").first().textContent();
      assert.equal(Number(text.replaceAll(",", "")), gc.pauses.count);
    },
  ],
  [
    "the band below the timeline has the kinds of work and the longest pauses, also for the keyboard",
    async ({ page, serve, heapline, trace }) => {
      await open(page, await collector({ serve, trace }), "view=table&live=all");
      const gc = heapline("gc", trace(FILE), "--rows", "20", "--points", "400", "--json");
      const band = page.locator(".gc-band canvas");
      const box = await band.boundingBox();
      const place = gc.series.collector_percent.indexOf(Math.max(...gc.series.collector_percent));
      // The last collection may be after the last event, where the timeline ends.
      const at = ((place + 0.5) / 400) * (gc.to / gc.subject.duration);
      await page.mouse.move(box.x + at * box.width, box.y + box.height - 4);
      const share = `${gc.series.collector_percent[place].toFixed(1)} % in the collector`;
      assert.ok((await page.locator(".tip").textContent()).includes(share));
      assert.equal(await page.locator(".gc-legend li").count(), gc.kinds.length + 1);
      assert.ok((await page.locator(".pause-mark").count()) > 3);
      await page.locator('.pause-mark[tabindex="0"]').hover();
      await page.mouse.move(0, 0);
      await page.locator('.pause-mark[tabindex="0"]').focus();
      const tip = await page.locator(".pause-tip").textContent();
      assert.ok(tip.includes(`at ${gc.worst[0].start.toFixed(3)} s`), tip);
      await page.keyboard.press("ArrowRight");
      const later = await page.locator(".pause-tip").textContent();
      assert.notEqual(later, tip);
      assert.match(later, /[\d,]+ words promoted \(exact\)/);
      await page.keyboard.press("Enter");
      await settled(page);
      assert.equal(await chosen(page, "windowOf"), "live");
      await page.locator(".gc-headline").click();
      assert.equal(await chosen(page, "view"), "collector");
      // What is painted: the tallest bar is not the colour of the ground.
      await eventually(async () => {
        const painted = await band.evaluate((canvas, share) => {
          const x = Math.floor(canvas.width * share);
          const { data } = canvas.getContext("2d").getImageData(x, Math.floor(canvas.height * 0.8), 1, 1);
          return Math.max(...data.slice(0, 3)) - Math.min(...data.slice(0, 3));
        }, at);
        assert.ok(painted > 20, `a grey pixel: ${painted}`);
      });
    },
  ],
  [
    "traces without collections have neither band nor tab",
    async ({ page, url }) => {
      await open(page, url);
      assert.equal(await page.locator(".gc-band").count(), 0);
      assert.equal(await page.getByRole("tab", { name: "Collector" }).count(), 0);
    },
  ],
  [
    "a report file has the collector",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      const file = join(scratch, "collector.html");
      heapline("report", trace(FILE), "-o", file);
      await open(page, pathToFileURL(file).href, "view=collector");
      assert.equal(await page.locator("#view .command").count(), 0, "there is an answer");
      assert.equal(await page.locator(".gc-head h2").textContent(), heapline("gc", trace(FILE)).split("\n")[0]);
      assert.ok((await page.locator(".pause-mark").count()) > 3);
      await page.locator(".pause").first().click();
      assert.match(await page.locator(".notice").textContent(), /no windows/);
    },
  ],
];
