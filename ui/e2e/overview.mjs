// The overview: findings and lists.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brush, chosen, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

const plain = (text) => text.replace(/\s+/g, " ").trim();

/** The sentences that `heapline summary` prints, without the commands below them. */
function printedFindings(text) {
  const [, part = ""] = /^Findings\n([^]*?)\n\n/m.exec(text) ?? [];
  return part
    .split(/^ {2}\d+\. /m)
    .slice(1)
    .map((one) => plain(one.replace(/^ {5}heapline .*$/m, "")));
}

/** The lists that `heapline summary` prints: the amount, share and name of each row. */
function printedRows(text) {
  const lists = text.slice(text.search(/^Live at peak, by/m), text.search(/^Next$/m));
  return [...lists.matchAll(/^ +(\S.*?) {2}(?: *)(\d+\.\d %) {2}[█-▏]* +(.+)$/gm)].map(([, ...cells]) =>
    plain(cells.join(" ")),
  );
}

async function findings(page) {
  return (await page.locator(".trace-finding").allTextContents()).map(plain);
}

async function rows(page) {
  const all = await page.locator(".ranked").all();
  return Promise.all(all.map(async (row) => plain((await row.locator("> span").allTextContents()).join(" "))));
}

export const overviewTests = [
  [
    "the overview is the first view, and has the findings and lists of heapline summary",
    async ({ page, url, serve, heapline, trace }) => {
      for (const [address, file] of [
        [url, trace(MIX)],
        [await serve("demo"), "demo"],
      ]) {
        await page.goto(address);
        await page.locator(".overview").waitFor();
        await settled(page);
        const text = heapline("summary", file, "--by", "function");
        assert.deepEqual(await findings(page), printedFindings(text));
        const expected = printedRows(text);
        assert.ok(expected.length >= 15, text);
        assert.deepEqual(await rows(page), expected);
      }
      const expectedOfDemo = await rows(page);
      assert.ok((await findings(page)).length >= 4);
      await page.getByRole("button", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.equal(command, "heapline summary demo --by function");
      // One switch lists the functions of libraries too.
      const ownCode = page.getByRole("combobox", { name: "Own code" });
      assert.equal(await ownCode.inputValue(), "lists");
      await ownCode.selectOption("nowhere");
      await settled(page);
      assert.deepEqual(await rows(page), printedRows(heapline("summary", "demo", "--by", "function", "--all-code")));
      assert.equal(await chosen(page, "lists"), "all");
      await ownCode.blur();
      await page.keyboard.press("y");
      assert.equal(await ownCode.inputValue(), "everywhere");
      await settled(page);
      assert.deepEqual(await rows(page), expectedOfDemo);
      await page.keyboard.press("y");
      assert.equal(await ownCode.inputValue(), "lists");
    },
  ],
  [
    "the rest of a list is in the table, with the figures of its rows",
    async ({ page, serve }) => {
      const url = await serve("demo");
      await open(page, url, "view=overview");
      await page.locator(".overview").waitFor();
      const lists = page.locator(".ranking", { has: page.locator("button.ranking-rest") });
      await lists.first().waitFor();
      const count = await lists.count();
      assert.ok(count >= 4, String(count));
      for (let k = 0; k < count; k++) {
        const row = lists.nth(k).locator(".ranked").first();
        const figure = plain(await row.locator(".number").first().textContent());
        const name = plain(await row.locator(".name").textContent());
        await lists.nth(k).locator("button.ranking-rest").click();
        await page.locator(".rows-body .row").first().waitFor();
        await settled(page);
        const first = plain(await page.locator(".rows-body .row").first().textContent());
        // The table has no room for the errors of blocks.
        const [shown] = figure.includes("B") ? [figure] : figure.split(" ±");
        assert.ok(first.includes(name) && first.includes(shown), `${name} ${shown}: ${first}`);
        await page.goBack();
        await page.locator(".overview").waitFor();
      }
    },
  ],
  [
    "the overview asks nothing twice",
    async ({ page, url }) => {
      const asked = [];
      page.on("request", (request) => {
        const report = /\/api\/v1\/(\w+\S*)/.exec(request.url())?.[1];
        if (report && report !== "status") asked.push(report);
      });
      await open(page, url, "view=overview");
      await page.locator(".overview").waitFor();
      assert.equal(new Set(asked).size, asked.length, `${asked}`);
      // The totals of the whole trace, and the overview.
      const reports = asked.map((question) => question.split("?")[0]).sort();
      assert.deepEqual(reports, ["info", "series", "summary", "summary"]);
    },
  ],
  [
    "each finding is a click to a view with the same figure",
    async ({ page, url: mix, serve }) => {
      const views = [];
      for (const url of [await serve("demo"), mix]) {
        await open(page, url, "view=overview");
        await page.locator(".overview").waitFor();
        const count = await page.locator(".trace-finding").count();
        for (let k = 0; k < count; k++) {
          await open(page, url, "view=overview");
          const finding = page.locator(".trace-finding").nth(k);
          const text = plain(await finding.textContent());
          await finding.click();
          await page.locator(".overview").waitFor({ state: "detached" });
          await settled(page);
          views.push(await chosen(page, "view"));
          const [, value, error, unit] = /(\d[\d.]*)( ± [\d.]+)? ([KM]iB)(?!\/s)/.exec(text);
          const figure = new RegExp(`${value}(${error ?? ""})? ${unit}`.replaceAll(".", "\\."));
          const shown = page.locator("main", { hasText: figure });
          await shown.waitFor().catch(() => assert.fail(`${text}: no ${figure} in ${views.at(-1)}`));
          await page.goBack();
          await page.locator(".overview").waitFor();
        }
      }
      assert.ok(new Set(views).size >= 3, String(views));
    },
  ],
  [
    "the overview follows the window, the filter and hidden functions",
    async ({ page, url, heapline, trace, expectErrors }) => {
      await open(page, url, "view=overview&where=size+%3C+100w&hide=Mix.tree");
      await brush(page, 0.2, 0.7);
      await page.locator(".overview").waitFor();
      const [from, to] = (await chosen(page, "window")).split("..");
      const text = heapline(
        "summary",
        trace(MIX),
        ...[
          "--where",
          "size < 100w",
          "--where",
          `allocated in ${from}s..${to}s`,
          "--by",
          "function",
          "--hide",
          "Mix.tree",
        ],
      );
      assert.deepEqual(await findings(page), printedFindings(text));
      assert.deepEqual(await rows(page), printedRows(text));
      // A filter with an error leaves what was there, dimmed.
      await page.locator(".filter-input").fill("size <");
      await page.locator(".overview.stale").first().waitFor();
      await page.locator(".filter-error", { hasText: "of the filter before" }).waitFor();
      expectErrors(/400/);
    },
  ],
  [
    "the overview can be used with the keyboard, and a row shows the callers of a function",
    async ({ page, url }) => {
      await open(page, url, "view=table");
      await page.keyboard.press("0");
      await page.locator(".overview").waitFor();
      const last = (await page.locator(".trace-finding").count()) + 1;
      for (let k = 0; k < last; k++) await page.keyboard.press("ArrowDown");
      const row = page.locator(".ranked").first();
      assert.ok(await row.evaluate((element) => element === document.activeElement));
      const name = await row.locator(".name-text").textContent();
      await page.keyboard.press("Enter");
      await settled(page);
      assert.deepEqual(
        [await chosen(page, "view"), await chosen(page, "focus"), await chosen(page, "live")],
        ["flame", name, "peak"],
      );
    },
  ],
  [
    "a scope chosen in the overview is shown in the flame graph",
    async ({ page, url }) => {
      await open(page, url, "view=overview");
      assert.equal(await page.locator(".tile[aria-checked=true]").count(), 0);
      await page.getByRole("radio", { name: "Live at the end" }).click();
      assert.deepEqual([await chosen(page, "view"), await chosen(page, "live")], ["flame", "end"]);
    },
  ],
  [
    "an overview without findings says so, and one of a damaged trace opens the details",
    async ({ page, serve, trace }) => {
      await open(page, await serve(trace("odd/empty.ctf")), "view=overview");
      await page.locator("#view", { hasText: "Nothing here" }).waitFor();
      await open(page, await serve(trace("damaged/overwritten.ctf")), "view=overview&where=size+%3C+2w");
      const damage = page.locator(".trace-finding", { hasText: "damaged" });
      await damage.click();
      await page.locator(".details .damage").waitFor();
    },
  ],
  [
    "a report file has an overview",
    async ({ page, heapline, scratch }) => {
      const file = join(scratch, "overview.html");
      heapline("report", "demo", "--slices", "2", "-o", file);
      await page.context().setOffline(true);
      const url = pathToFileURL(file).href;
      await page.goto(url);
      await page.locator(".overview").waitFor();
      const text = heapline("summary", "demo", "--by", "function");
      assert.deepEqual(await findings(page), printedFindings(text));
      assert.deepEqual(await rows(page), printedRows(text));
      const count = await page.locator(".trace-finding").count();
      for (let k = 0; k < count; k++) {
        await open(page, url, "view=overview");
        await page.locator(".trace-finding").nth(k).click();
        await page.locator(".overview").waitFor({ state: "detached" });
        await settled(page);
        assert.equal(await page.locator("#view .command").count(), 0, `no answer for ${page.url()}`);
      }
      await open(page, url, "view=overview");
      await brush(page, 0.3, 0.6);
      assert.match(await page.locator(".whole-note").textContent(), /chosen window does not restrict it/);
    },
  ],
];
