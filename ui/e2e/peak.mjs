// The peak of the selection, and the peak without some of the blocks.

import assert from "node:assert/strict";
import { brush, chosen, eventually, flamePoint, nameAt, open, settled, timelinePoint } from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

/** A text without its line breaks. */
function words(text) {
  return text.replace(/\s+/g, " ").trim();
}

/** The peak that `heapline peak` prints. */
function point(heapline, file, ...options) {
  const text = heapline("peak", file, ...options);
  const [, bytes, time] = /^Peak[^:]*: (\S+(?: ± \S+)? \S+) at (\S+ \S+?)[,\n ]/m.exec(text) ?? assert.fail(text);
  return `${bytes} at ${time}`;
}

const whatIf = (page) => page.locator(".what-if");

export const peakTests = [
  [
    "the peak of a window and of a filter is that of heapline peak",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table&live=all");
      assert.equal(await page.locator(".selection-peak").count(), 0);
      await brush(page, 0.1, 0.4);
      const [from, to] = (await chosen(page, "window")).split("..");
      const inWindow = point(heapline, trace(MIX), "--window", `${from}s..${to}s`);
      await page.locator(".selection-peak", { hasText: inWindow }).waitFor();
      assert.equal(words(await page.locator(".selection-peak").textContent()), `peak in the window ${inWindow}`);
      await open(page, url, "view=table&live=all&where=size+%3C+10w");
      const ofFilter = point(heapline, trace(MIX), "--where", "size < 10w");
      assert.notEqual(ofFilter, inWindow);
      await page.locator(".selection-peak", { hasText: `peak of the selection ${ofFilter}` }).waitFor();
      await page.locator(".selection-peak").click();
      await page.getByRole("menuitem", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(command, /^heapline peak \S+ --where 'size < 10w' --rows 0$/);
    },
  ],
  [
    "one key shows the peak without a function, in the flame graph, the table, the tree and in leaks",
    async ({ page, url, serve, heapline, trace }) => {
      const check = async (name, file = trace(MIX)) => {
        const clause = `inside "${name}"`;
        assert.equal(await chosen(page, "without"), clause);
        await whatIf(page).locator(".chip-text", { hasText: "instead of" }).waitFor();
        const report = heapline("peak", file, "--without", clause);
        const text = words(await whatIf(page).locator(".chip-text").textContent());
        const [, left, before] = /^inside ".*" the peak is (.*) \(instead of (.*)\)$/.exec(text);
        assert.equal(before, point(heapline, file));
        const [bytes, time] = left.split(" at ");
        assert.ok(report.includes(bytes) && report.includes(time), `${text}\n${report}`);
        await page.locator(".what-if .chip-close").click();
        assert.equal(await chosen(page, "without"), null);
      };
      await open(page, url, "view=flame");
      const name = await nameAt(page, 2, 0.1);
      await page.keyboard.press("-");
      await check(name);
      // By the menu, too.
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)), { button: "right" });
      await page.getByRole("menuitem", { name: "What if" }).click();
      await check(name);
      for (const [address, file, view] of [
        [url, trace(MIX), "table"],
        [await serve("demo"), "demo", "leaks"],
      ]) {
        await open(page, address, `view=${view}`);
        await page.locator("#view .name-text").first().waitFor();
        await page.keyboard.press("ArrowDown");
        const selected = await page.locator(".is-selected .name-text").textContent();
        await page.keyboard.press("-");
        await check(selected, file);
      }
      await open(page, url, "view=tree&treeDirection=down");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("-");
      await check(/"(.*)"/.exec(await chosen(page, "without"))[1]);
    },
  ],
  [
    "the timeline draws the total without a function beside the real one, with its figures",
    async ({ page, url, heapline, trace }) => {
      /** The pixels of the timeline in the colour of the line, which nothing else has if no moment is chosen. */
      const drawn = () =>
        page.locator(".plot canvas").evaluate((canvas) => {
          const probe = document.createElement("canvas").getContext("2d");
          const coloured = document.body.appendChild(document.createElement("i"));
          coloured.style.color = "var(--accent)";
          probe.fillStyle = getComputedStyle(coloured).color;
          coloured.remove();
          probe.fillRect(0, 0, 1, 1);
          const accent = probe.getImageData(0, 0, 1, 1).data;
          const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
          let found = 0;
          for (let i = 0; i < data.length; i += 4)
            if (accent.every((value, k) => Math.abs(data[i + k] - value) < 40)) found += 1;
          return found;
        });
      await open(page, url, "view=table&live=all");
      assert.ok((await drawn()) < 20);
      assert.equal(await page.locator(".without-key").count(), 0);
      const query = "size >= 20w";
      await open(page, url, `view=table&live=all&without=${encodeURIComponent(query)}`);
      await page.locator(".without-key").waitFor();
      await eventually(async () => assert.ok((await drawn()) > 100));
      await page.mouse.move(...(await timelinePoint(page, 0.5)));
      const said = await page.locator(".readout-without").textContent();
      const { times, total } = heapline("series", trace(MIX), "--where", `not (${query})`, "--points", "400", "--json");
      const at = times.findIndex((t) => t >= times.at(-1) / 2);
      const near = [-1, 0, 1].map((step) => (total.values[at + step] / 2 ** 20).toFixed(2));
      assert.ok(near.includes(/without it ([\d.]+) MiB/.exec(said)?.[1]), `${said}, ${near}`);
    },
  ],
  [
    "a peak without several functions is copied as a command, and becomes a filter",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table&live=all");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("-");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("-");
      const queries = await chosen(page, "without");
      assert.equal(queries.length, 2);
      const text = whatIf(page).locator(".chip-text", { hasText: `${queries.join(" or ")} the peak is` });
      await text.waitFor();
      await settled(page);
      await page.locator(".what-if .chip-body").click();
      await page.getByRole("menuitem", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(command, /^heapline peak \S+ --without '.*' --without '.*' --rows 0$/);
      const both = queries.flatMap((query) => ["--without", query]);
      assert.equal(
        words(shell(command.replace(/(?<=^heapline peak )\S+/, `"${trace(MIX)}"`))),
        words(heapline("peak", trace(MIX), ...both, "--rows", "0")),
      );
      // The same key again takes it back.
      await page.keyboard.press("-");
      assert.equal(await chosen(page, "without"), queries[0]);
      await page.locator(".what-if .chip-body").click();
      await page.getByRole("menuitem", { name: "Filter" }).click();
      assert.deepEqual([await chosen(page, "without"), await chosen(page, "where")], [null, `not (${queries[0]})`]);
      await settled(page);
    },
  ],
  [
    "memory inside of a module is excluded by the module",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=flame&live=all&frames=module&unfolded=");
      const name = await nameAt(page, 2, 0.1);
      await page.keyboard.press("-");
      assert.equal(await chosen(page, "without"), `inside module "${name}"`);
      await page.keyboard.press("o");
      await settled(page);
      const report = heapline("summary", trace(MIX), "--where", `inside module "${name}"`, "--json");
      assert.ok(report.allocated.bytes.value > 0);
      assert.equal(await page.locator(".filter-error").textContent(), "");
    },
  ],
];
