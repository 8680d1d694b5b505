// The filter bar, and views that filter.

import assert from "node:assert/strict";
import { assertHeadline, chosen, headline, open, settled } from "./page.mjs";
import { shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const filterTests = [
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
    "a name that the trace does not have is said to be missing, with the most similar one",
    async ({ page, url }) => {
      await open(page, url, 'live=all&where=inside+"mix.wrods"');
      const hint = page.locator(".filter-unmatched");
      await hint.filter({ hasText: /^The trace has no function "mix.wrods"; did you mean "Mix.words"\?$/ }).waitFor();
      await page.locator(".filter-input").fill('inside "Mix.words"');
      await hint.waitFor({ state: "detached" });
    },
  ],
  [
    "own code can be corrected on the page, with the figures of the command",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table&live=all");
      const patterns = page.getByRole("textbox", { name: "Patterns of own code" });
      await page.getByRole("button", { name: "Change", exact: true }).click();
      await patterns.fill("Stdlib.Map.*, Mix.big");
      await patterns.press("Enter");
      await settled(page);
      const mine = ["--mine", "Stdlib.Map.*", "--mine", "Mix.big"];
      const report = heapline("hotspots", trace(MIX), ...mine, "--json");
      assert.deepEqual(
        await page.locator(".rows-body .row .name-text").allTextContents(),
        report.rows.map((row) => row.label.name),
      );
      await page.getByRole("combobox", { name: "Own code" }).selectOption("nowhere");
      await patterns.waitFor({ state: "detached" });
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
      assert.match(await page.locator(".filter-error").textContent(), /did you mean lifetime\?/);
      // Once, and over no control.
      assert.equal(await page.getByText("did you mean").count(), 1);
      const error = await page.locator(".filter-error").boundingBox();
      const field = await page.locator(".filter-box").boundingBox();
      assert.ok(error.y >= field.y && error.y + error.height <= field.y + field.height);
      assert.deepEqual(await headline(page), before);
      expectErrors(/400/);
    },
  ],
  [
    "a filter with an error that the page opens with is explained once",
    async ({ page, url, expectErrors }) => {
      await page.goto(`${url}#view=table&where=lifetim+%3E+2s`);
      await page.locator(".filter-error", { hasText: "did you mean lifetime" }).waitFor();
      await page.locator(".empty-title", { hasText: "The filter has an error." }).waitFor();
      assert.equal(await page.getByText("did you mean").count(), 1);
      expectErrors(/400/);
    },
  ],
  [
    "a word that is no function suggests the module of that name",
    async ({ page, url }) => {
      await open(page, url, "where=inside+stdlib");
      await page.locator(".filter-unmatched", { hasText: 'did you mean module "Stdlib"?' }).waitFor();
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
    "while a filter is not understood, all numbers are marked as those of the one before",
    async ({ page, url, expectErrors }) => {
      for (const view of ["overview", "flame", "table", "tree", "lifetimes", "leaks", "compare", "blocks"]) {
        await open(page, url, `view=${view}&live=all`);
        const top = await page.locator(".timeline").boundingBox();
        await page.locator(".filter-input").fill("lifetme > 100ms");
        for (const part of [".headline.stale", ".plot.stale", "#view .stale"])
          await page.locator(part).first().waitFor();
        await page.locator(".filter-error", { hasText: "of the filter before" }).waitFor();
        assert.deepEqual(await page.locator(".timeline").boundingBox(), top, "the page does not move");
        await page.locator(".filter-input").fill("");
        await settled(page);
      }
      expectErrors(/400/);
    },
  ],
  [
    "hidden functions are hidden in all views, and all say so",
    async ({ page, url, heapline, trace }) => {
      const options = ["--where", "live at end", "--hide", "Stdlib.*", "--json"];
      const report = heapline("hotspots", trace(MIX), ...options);
      for (const view of ["flame", "table", "tree", "leaks", "compare"]) {
        await open(page, url, `view=${view}&live=end&hide=Stdlib.*`);
        await page.locator(".chip", { hasText: /hidden\s*Stdlib/ }).waitFor();
        const layers = await page.locator(".layers button").allTextContents();
        assert.ok(!layers.some((name) => name.startsWith("Stdlib.")), layers.join());
        if (view !== "table") continue;
        const names = await page.locator(".rows-body .name").allTextContents();
        assert.deepEqual(
          names,
          report.rows.map((row) => row.label.name),
        );
      }
      await page.getByRole("button", { name: "Remove hidden Stdlib.*" }).click();
      assert.equal(await chosen(page, "hide"), null);
    },
  ],
  [
    "Tab leaves the filter, and the focus is not lost on the way",
    async ({ page, url }) => {
      await open(page, url);
      await page.keyboard.press("w");
      await page.locator(".completions li").first().waitFor();
      await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => document.activeElement.textContent);
      assert.match(focus, /Filter/);
    },
  ],
  [
    "the words of a chip can be clicked",
    async ({ page, url }) => {
      await open(page, url, "live=all&window=0.01..0.02");
      await page.locator(".chip-kind", { hasText: "allocated in" }).click();
      await page.getByRole("menuitemcheckbox", { name: "Collected in it" }).click();
      assert.equal(await chosen(page, "windowOf"), "collected");
    },
  ],
  [
    "memory of libraries is attributed to own code in all views, and the page says which are libraries",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "view=table&live=all");
      await page.keyboard.press("y");
      await settled(page);
      const report = heapline("hotspots", trace(MIX), "--own-code", "--json");
      assert.deepEqual(
        await page.locator(".rows-body .name").allTextContents(),
        report.rows.map((row) => row.label.name),
      );
      const ownCode = page.getByRole("combobox", { name: "Own code" });
      assert.equal(await ownCode.inputValue(), "everywhere");
      await ownCode.hover();
      assert.match(await page.locator(".tip").textContent(), /Libraries in this trace: .*Stdlib/);
      for (const view of ["flame", "tree", "leaks", "compare"]) {
        await open(page, url, `view=${view}&live=all&ownCode=`);
        await page.getByRole("button", { name: "Copy as command" }).click();
        assert.match(await page.evaluate(() => navigator.clipboard.readText()), /--own-code/);
        const layers = await page.locator(".layers button").allTextContents();
        assert.ok(layers.length > 0 && !layers.some((name) => name.startsWith("Stdlib.")), layers.join());
      }
    },
  ],
];
