// The timeline.

import assert from "node:assert/strict";
import { assertHeadline, brush, chosen, headline, open, settled, timelinePoint } from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const timelineTests = [
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
      assert.equal(await chosen(page, "live"), "peak");
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
    "a click in the timeline chooses a point in time, also on a layer",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.mouse.move(...(await timelinePoint(page, 0.68, 0.8)));
      await page.locator(".readout tr.is-hovered").waitFor();
      await page.mouse.click(...(await timelinePoint(page, 0.68, 0.8)));
      assert.ok(Math.abs(Number(await chosen(page, "live")) - 0.041921 * 0.68) < 0.001);
      assert.equal(await chosen(page, "callers"), null);
    },
  ],
  [
    "the timeline has the errors of heapline series, of all measures",
    async ({ page, url, heapline, trace }) => {
      for (const measure of ["live-bytes", "allocated-bytes", "promoted-bytes"]) {
        await open(page, url, `measure=${measure}&split=none`);
        await page.locator(".plot canvas").focus();
        await page.keyboard.press("ArrowLeft");
        const series = heapline("series", trace(MIX), "--measure", measure, "--points", "400", "--json");
        assert.equal(series.error.length, 400);
        const box = await page.locator(".plot canvas").boundingBox();
        await page.mouse.move(box.x + (box.width * 200) / 400 - 0.5, box.y + box.height / 2);
        const [value, error] = [series.total.values[199], series.error[199]];
        const text = await page.locator(".readout-head strong").textContent();
        const [, shown, shownError, unit] = /^(\S+) ± (\S+) (.*)$/.exec(text) ?? [];
        const scale = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 }[unit?.replace("/s", "")];
        assert.ok(Math.abs((shown * scale) / value - 1) < 0.01, `${text} for ${value}`);
        assert.ok(Math.abs((shownError * scale) / error - 1) < 0.1, `${text} for ${error}`);
      }
    },
  ],
  [
    "the views follow a layer, which gets the whole chart",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all&view=table&split=function");
      await page.locator(".layers button", { hasText: "Mix.words" }).click();
      await settled(page);
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", 'own function = "Mix.words"'));
      assert.deepEqual(await page.locator(".rows-body .row .name-text").allTextContents(), ["Mix.words"]);
      await page.getByRole("button", { name: /Remove layer/ }).click();
      await page.getByRole("combobox", { name: "Own code" }).selectOption("nowhere");
      await settled(page);
      const name = "Stdlib.Map.Make.bal";
      await page.locator(".layers button", { hasText: name }).click();
      await settled(page);
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", `function = "${name}"`));
      assert.deepEqual(await page.locator(".rows-body .row .name-text").allTextContents(), [name]);
      assert.equal(await page.locator(".chip", { hasText: "layer" }).count(), 1);
      const caller = "Stdlib.Map.Make.add";
      await page.locator(".layers button", { hasText: caller }).click();
      await settled(page);
      const clause = `function = "${name}" called by "${caller}"`;
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", clause));
      const series = heapline("series", trace(MIX), "--where", clause, "--points", "400", "--json");
      const most = Math.max(
        ...series.total.high.map((high, i) => Math.max(high, series.total.values[i] + series.error[i])),
      );
      // Where the layer is above the middle of the chart, only if it has the scale of its own.
      const place = series.total.values.findIndex((value) => value > 0.75 * most);
      await page.mouse.move(...(await timelinePoint(page, (place + 0.5) / 400, 0.45)));
      await page.locator(".readout tr.is-hovered").waitFor();
    },
  ],
  [
    "a function has the same colour in the timeline, the table and the flame graph",
    async ({ page, url }) => {
      const name = "Mix.big";
      const rgb = (colour) =>
        page.evaluate((colour) => {
          const context = document.createElement("canvas").getContext("2d");
          context.fillStyle = colour;
          context.fillRect(0, 0, 1, 1);
          return [...context.getImageData(0, 0, 1, 1).data];
        }, colour);
      const dot = async (place) =>
        rgb(await place.locator(".dot").evaluate((dot) => getComputedStyle(dot).backgroundColor));
      await open(page, url, "live=all&view=table");
      const legend = await dot(page.locator(".layers button", { hasText: name }));
      assert.deepEqual(await dot(page.locator(".rows-body .row", { hasText: name }).first()), legend);
      await open(page, url, "live=all&direction=up");
      await page.locator(".flame-sticky canvas").waitFor();
      await settled(page);
      const box = await page.evaluate(() => {
        const canvas = document.querySelector(".flame-sticky canvas");
        // The largest is the first box of the first row below everything.
        return [...canvas.getContext("2d").getImageData(2, 23, 1, 1).data];
      });
      const [first] = await page.evaluate(async () => {
        const tree = await (await fetch("api/v1/tree?bottom-up=true")).json();
        return tree.nodes.map((node) => node.label.name);
      });
      assert.equal(first, name);
      assert.deepEqual(box, legend);
    },
  ],
  [
    "a layer splits into its callers, and breadcrumbs lead back",
    async ({ page, url }) => {
      await open(page, url, "split=function&lists=all");
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
    "a branch of the call tree becomes the filter, and has the memory that its layer had",
    async ({ page, url, heapline, trace }) => {
      await open(page, url);
      assert.equal(await page.getByRole("combobox", { name: "by" }).inputValue(), "branches");
      await page.locator(".layers button", { hasText: "Mix.words" }).click();
      await settled(page);
      const where = await chosen(page, "where");
      const { groups } = heapline("series", trace(MIX), "--branches", "--points", "400", "--json");
      const branch = groups.find(({ label }) => label.name === "Mix.words");
      assert.equal(where, branch.query);
      const { total } = heapline("series", trace(MIX), "--where", where, "--points", "400", "--json");
      assert.deepEqual(total.values, branch.values);
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
    "times of the address that are after the end are clamped",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=1e9&zoom=1000..2000");
      assert.equal(await chosen(page, "live"), "end");
      assert.equal(await chosen(page, "zoom"), null);
      await assertHeadline(page, heapline("summary", trace(MIX)));
      await page.evaluate(() => (location.hash = "live=all&window=0.02..99"));
      await page.waitForFunction(() => !location.hash.includes("99"));
      assert.match(await chosen(page, "window"), /^0\.02\.\.0\.04/);
    },
  ],
  [
    "all layers have a name: those without room are in a menu, the rest is other",
    async ({ page, url }) => {
      await open(page, url, "split=site");
      const more = page.locator(".layers-more");
      const hidden = Number(/\+(\d+)/.exec(await more.textContent())[1]);
      const series = await page.evaluate(async () => {
        const response = await fetch("api/v1/series?by=site&points=400");
        return response.json();
      });
      const named = series.groups.filter((group) => !group.is_other).length;
      assert.equal(await page.locator(".layers li:not(.is-cut)").count(), named - hidden);
      assert.match(await page.locator(".layers-rest").textContent(), /other/);
      await more.click();
      assert.equal(await page.getByRole("menuitem").count(), series.groups.length);
    },
  ],
];
