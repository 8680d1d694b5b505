// The page in a report file, opened from disk with the network off.

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { assertHeadline, brush, chosen, flamePoint, headline, nameAt, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";
let made = null;

/** The report, made once. */
function report({ heapline, trace, scratch }) {
  made ??= write(scratch, "report.html", heapline, trace(MIX));
  return made;
}

/** Writes a report, and gives its URL. */
function write(scratch, name, heapline, ...options) {
  const file = join(scratch, name);
  heapline("report", ...options, "-o", file);
  return pathToFileURL(file).href;
}

export const reportTests = [
  [
    "a report file has the same numbers without a network",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      await open(page, report({ heapline, trace, scratch }));
      await assertHeadline(page, heapline("summary", trace(MIX)));
      for (const view of ["flame", "table", "tree", "lifetimes", "leaks"]) {
        await open(page, report({ heapline, trace, scratch }), `view=${view}`);
        assert.equal(await page.locator("#view .command").count(), 0, `${view} has no answer`);
      }
    },
  ],
  [
    "brushing a report file with time slices changes every view",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      const url = write(scratch, "slices.html", heapline, trace(MIX), "--slices", "3");
      await open(page, url, "live=all&view=table");
      const before = await headline(page);
      await brush(page, 0.3, 0.6);
      const [from, to] = (await chosen(page, "window")).split("..");
      assert.notDeepEqual(await headline(page), before);
      await assertHeadline(page, heapline("summary", trace(MIX), "--where", `allocated in ${from}s..${to}s`));
      for (const view of ["flame", "table", "tree", "lifetimes"]) {
        await open(page, url, `view=${view}&live=all&window=${from}..${to}`);
        assert.equal(await page.locator("#view .command").count(), 0, `${view} has no answer`);
      }
    },
  ],
  [
    "search, focus, hide, zoom and sort work in a report file",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      await open(page, report({ heapline, trace, scratch }), "live=all");
      await page.keyboard.press("/");
      await page.keyboard.type("Map.Make");
      assert.match(await page.locator(".found").textContent(), /^3\d\.\d %/);
      await page.keyboard.press("Escape");
      const name = await nameAt(page, 2, 0.1);
      await page.keyboard.press("f");
      await settled(page);
      assert.equal(await chosen(page, "focus"), name);
      const tree = heapline("tree", trace(MIX), "--focus", name, "--json");
      const share = ((100 * tree.focus_total.bytes.value) / tree.total.bytes.value).toFixed(1);
      assert.match(await page.locator(".transforms").textContent(), new RegExp(`${share} % of all`));
      await page.keyboard.press("u");
      await settled(page);
      await page.mouse.move(...(await flamePoint(page, 2, 0.1)));
      await page.keyboard.press("h");
      await settled(page);
      assert.notEqual(await nameAt(page, 2, 0.1), name);
      await open(page, report({ heapline, trace, scratch }), "live=all&view=table");
      await page.getByRole("button", { name: "Function" }).click();
      const names = await page.locator(".rows-body .row .name").allTextContents();
      assert.deepEqual(names, [...names].sort());
    },
  ],
  [
    "what a report file does not have needs the trace: the command that opens it is shown",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      const url = report({ heapline, trace, scratch });
      await open(page, url);
      assert.ok(await page.locator(".filter-input").isDisabled());
      await page.goto(`${url}#view=table&where=size+%3E+1k&live=all`);
      await page.reload();
      const command = await page.locator(".command").textContent();
      assert.equal(command, "heapline view trace.ctf");
      await page.getByRole("button", { name: "Copy as command" }).click();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), command);
    },
  ],
  [
    "a report file has the commands of its views",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      await open(page, report({ heapline, trace, scratch }), "view=table");
      await page.getByRole("button", { name: "Copy as command" }).click();
      assert.equal(
        await page.evaluate(() => navigator.clipboard.readText()),
        "heapline hotspots trace.ctf --where 'live at peak' --rows 1000",
      );
    },
  ],
  [
    "a focus in a report file says that it may be more",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      await open(page, report({ heapline, trace, scratch }), "live=all&focus=Stdlib.Map.Make.bal");
      const text = () => page.locator(".transforms").textContent();
      const tree = heapline("tree", trace(MIX), "--focus", "Stdlib.Map.Make.bal", "--json");
      const share = ((100 * tree.focus_total.bytes.value) / tree.total.bytes.value).toFixed(1);
      if (!(await text()).includes(` ${share} % of all`)) assert.match(await text(), /at least .* inside/);
      // What has nothing merged is exact.
      await open(page, report({ heapline, trace, scratch }), "live=all&focus=Mix");
      assert.match(await text(), /100\.0 % of all/);
      assert.doesNotMatch(await text(), /at least/);
    },
  ],
  [
    "a report file does not offer what it does not have",
    async ({ page, heapline, trace, scratch }) => {
      await page.context().setOffline(true);
      const url = report({ heapline, trace, scratch });
      await open(page, url, "live=all&hide=Stdlib.*&view=table");
      await page.locator(".chip", { hasText: "Stdlib.*" }).waitFor();
      assert.match(await page.locator(".whole-note").textContent(), /hidden functions are included/);
      await page.locator(".rows-body .row").first().click({ button: "right" });
      const items = await page.getByRole("menuitem").allTextContents();
      assert.ok(items.some((text) => text.includes("Focus")) && !items.some((text) => text.includes("Hide")));
      await page.keyboard.press("Escape");
      await open(page, url, "live=all");
      assert.equal(await page.getByLabel("Boxes").count(), 0);
      await page.keyboard.press("l");
      assert.equal(await chosen(page, "lines"), null);
      // There are no time windows, and not all layers.
      await brush(page, 0.3, 0.6);
      assert.equal(await chosen(page, "window"), null);
      const choices = (label) => page.getByLabel(label).first().locator("option").allTextContents();
      assert.deepEqual(await choices(/^by/), ["branch", "function"]);
      await page.getByLabel("Measure").selectOption("allocation-rate");
      await settled(page);
      assert.deepEqual(await choices(/^by/), ["branch", "function"]);
      assert.equal(await page.locator(".timeline .command").count(), 0);
      await open(page, url, "live=all&view=tree");
      assert.equal(await page.getByLabel("A row is a").count(), 0);
      await open(page, url, "view=compare&before=0..0.01");
      await page.locator(".diff-box .rows-body .row").first().waitFor();
      assert.equal(await page.getByRole("radio", { name: "Live at the peak" }).count(), 1, "only the tile");
      await page.locator(".facts").click();
      assert.equal(await page.getByRole("radiogroup", { name: "Estimator" }).count(), 0);
    },
  ],
];
