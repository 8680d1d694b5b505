// The page with a server: what concerns all views.

import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { assertHeadline, cells, chosen, eventually, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const viewTests = [
  [
    "the name of the program can be read on a phone",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 390, height: 800 });
      await open(page, url);
      const name = page.locator(".program h1");
      // A name of ten letters fits too.
      await name.evaluate((element) => (element.textContent = "ocamlopt.x"));
      assert.ok(await name.evaluate((element) => element.scrollWidth <= element.clientWidth));
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      await page.getByRole("button", { name: "Help and keys" }).click();
      await page.locator("dialog[open]").waitFor();
    },
  ],
  [
    "tiles have the shares of a window, also in a window of 1366 pixels",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 1366, height: 768 });
      await open(page, url, "window=0.01..0.03&live=all");
      for (const tile of await page.locator(".tile[role=radio]").all()) {
        const share = tile.locator(".tile-notes > span").first();
        assert.match(await share.textContent(), /^[\d.]+ %$/);
        const [inner, outer] = [await share.boundingBox(), await tile.locator(".tile-notes").boundingBox()];
        assert.ok(inner.x >= outer.x && inner.y + inner.height <= outer.y + outer.height + 1, "it is seen");
      }
    },
  ],
  [
    "a button copies the link of the present view, which opens the same",
    async ({ page, url }) => {
      await open(page, url, "view=table&by=module&live=end");
      await page.getByRole("button", { name: "With callees" }).click();
      await settled(page);
      await page.getByRole("button", { name: "Copy the link of this view" }).click();
      const link = await page.evaluate(() => navigator.clipboard.readText());
      const shown = await cells(page, 1);
      await page.goto("about:blank");
      await page.goto(link);
      await settled(page);
      assert.deepEqual([await chosen(page, "by"), await chosen(page, "sort")], ["module", "inclusive"]);
      assert.deepEqual(await cells(page, 1), shown);
    },
  ],
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
      assert.equal(await chosen(page, "view"), "flame");
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
    "empty and damaged traces look right",
    async ({ page, serve, trace }) => {
      await open(page, await serve(trace("odd/empty.ctf")));
      assert.match(await page.locator(".view").textContent(), /Nothing here/);
      for (const view of ["overview", "table", "tree", "lifetimes", "leaks", "blocks", "source"]) {
        await open(page, page.url().split("#")[0], `view=${view}`);
        // Some views ask for more before they know.
        await page.locator("#view", { hasText: /Nothing/ }).waitFor();
      }
      assert.equal(await page.locator(".timeline-mark").count(), 0, "there is no time to mark");
      await open(page, await serve(trace("damaged/overwritten.ctf")));
      await page.locator(".badge.is-warning").click();
      assert.match(await page.locator(".damage").textContent(), /986 allocations are known to be lost/);
    },
  ],
  [
    "the heap snapshots of a run have their times and sizes",
    async ({ page, url }) => {
      const { trace } = await (await fetch(`${url}api/v1/info`)).json();
      await page.route(/\/status/, async (route) => {
        const response = await route.fetch();
        const snapshots = [
          { name: "run 1.heap", time_us: trace.start_time_us + 21_000, file_bytes: 3 * 2 ** 20 },
          { name: "run.end.heap", time_us: null, file_bytes: 512 },
        ];
        await route.fulfill({ response, json: { ...(await response.json()), snapshots } });
      });
      await open(page, url, "view=snapshots");
      const rows = await page
        .locator(".snapshot-list tbody tr")
        .evaluateAll((rows) => rows.map((row) => [...row.cells].map((cell) => cell.innerText)));
      assert.deepEqual(rows, [
        ["run 1.heap", "21 ms", "3 MiB"],
        ["run.end.heap", "unknown", "512 B"],
      ]);
      assert.equal(await page.locator(".snapshot-list a").first().getAttribute("href"), "snapshots/run%201.heap/");
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
    "a file that cannot be loaded is said to be none",
    async ({ page, url, serve, trace }) => {
      await assert.rejects(serve(trace("README.md")), /ended with 2: heapline: .*not a memtrace trace/);
      await page.route("**/api/v1/status", async (route) => {
        const response = await route.fetch();
        const json = { ...(await response.json()), state: "failed", error: "trace.ctf: damaged trace" };
        await route.fulfill({ response, json });
      });
      await page.goto(url);
      assert.equal(await page.locator(".splash-error").textContent(), "trace.ctf: damaged trace");
    },
  ],
  [
    "no view is an obstacle, in light and in dark",
    async ({ page, url, serve, trace }) => {
      const collector = await serve(trace("generated/collector.ctf"));
      const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const view of [
          "overview",
          "flame",
          "table",
          "tree",
          "lifetimes",
          "leaks",
          "compare",
          "blocks",
          "compare&diffShape=flame",
          "source",
          "source&source=mix.ml",
          "collector",
        ]) {
          const of = view === "collector" ? collector : url;
          await open(page, of, `view=${view}&live=all&where=size+%3C+100w&window=0.01..0.03`);
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
    async ({ page, url, serve, trace }) => {
      const collector = await serve(trace("generated/collector.ctf"));
      for (const width of [390, 800, 1280, 1920]) {
        await page.setViewportSize({ width, height: 900 });
        for (const view of [
          "overview",
          "source&source=mix.ml",
          "flame",
          "table",
          "tree",
          "lifetimes",
          "leaks",
          "compare",
          "blocks",
          "collector",
        ]) {
          if (width === 390 && view !== "collector") continue;
          await open(page, view === "collector" ? collector : url, `view=${view}`);
          const overhang = await page.evaluate(
            () => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
          );
          assert.ok(overhang <= 0, `${view} at ${width}: ${overhang} px too wide`);
        }
      }
    },
  ],
  [
    "at 1366 by 768 pixels, sixteen rows of the flame graph and of the table are visible",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 1366, height: 768 });
      await open(page, url);
      const flame = await page.locator(".flame-scroller").boundingBox();
      assert.ok(Math.min(flame.height, 768 - flame.y) >= 16 * 20, JSON.stringify(flame));
      await open(page, url, "view=table&live=all");
      const rows = await page.locator(".rows").boundingBox();
      const row = await page.locator(".rows-body .row").first().boundingBox();
      assert.ok(Math.min(rows.height, 768 - rows.y) >= 17 * row.height, JSON.stringify([rows, row]));
    },
  ],
  [
    "numbers on top are never cut in half",
    async ({ page, url }) => {
      for (const width of [390, 800, 1100, 1366]) {
        await page.setViewportSize({ width, height: 800 });
        await open(page, url, "where=size+%3C+100w&live=all");
        const cut = await page.evaluate(() => {
          const parts = [...document.querySelectorAll(".tile-value, .tile-name, .tile-notes span")];
          return parts
            .filter((part) => {
              const [inner, outer] = [part.getBoundingClientRect(), part.closest(".tile").getBoundingClientRect()];
              const notes = part.closest(".tile-notes")?.getBoundingClientRect();
              // Notes without room are on another line, which is not visible.
              if (notes && inner.top >= notes.bottom) return false;
              return inner.right > outer.right || inner.left < (notes?.left ?? outer.left) - 1;
            })
            .map((part) => part.textContent);
        });
        assert.deepEqual(cut, [], `at ${width}`);
        const overhang = await page.evaluate(
          () => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth,
        );
        assert.ok(overhang <= 0, `${overhang} px too wide at ${width}`);
      }
    },
  ],
  [
    "arrow keys choose in groups of radio buttons",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.locator(".tile[aria-checked=true]").focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await chosen(page, "live"), "peak");
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-checked")), "true");
      await page.getByRole("radio", { name: "Top-down" }).focus();
      await page.keyboard.press("ArrowRight");
      assert.equal(await chosen(page, "direction"), "up");
      // Tab leaves the group: only one button of it is in its way.
      assert.equal(await page.getByRole("radiogroup", { name: "Direction" }).locator("[tabindex='0']").count(), 1);
    },
  ],
  [
    "forced colours show what is chosen",
    async ({ page, url }) => {
      await page.emulateMedia({ forcedColors: "active" });
      await open(page, url, "view=table");
      await page.locator(".rows-body .row").first().click();
      for (const chosen of [".tile[aria-checked=true]", ".tabs [aria-selected=true]", ".row.is-selected"]) {
        const outline = await page.locator(chosen).evaluate((element) => getComputedStyle(element).outlineStyle);
        assert.equal(outline, "solid", chosen);
      }
    },
  ],
  [
    "the rows of the tree that are open are in the address",
    async ({ page, url }) => {
      await open(page, url, "view=tree&live=all&treeDirection=down");
      const names = () => page.locator(".rows-body .name").allTextContents();
      await page.getByRole("button", { name: "Close all" }).click();
      const closed = await names();
      await page.locator(".rows-body .row").first().click();
      const opened = await names();
      assert.ok(opened.length > closed.length);
      await page.reload();
      await settled(page);
      assert.deepEqual(await names(), opened);
    },
  ],
  [
    "if nothing died, all blocks survive",
    async ({ page, url }) => {
      await open(page, url, "view=lifetimes&live=end");
      const curve = page.locator(".curve");
      const [line, area] = [await curve.boundingBox(), await page.locator(".curve-area").boundingBox()];
      assert.ok(line.width > 100 && Math.abs(area.y - line.y) < 3 && area.height > 100, JSON.stringify([line, area]));
    },
  ],
  [
    "the details of a recording count its domains",
    async ({ page, url, serve, trace }) => {
      const domains = async (address) => {
        await open(page, address);
        await page.locator(".facts").click();
        return page.locator(".details dt", { hasText: "Domains" }).locator("+ dd").textContent();
      };
      assert.equal(await domains(url), "1");
      assert.match(await domains(await serve(trace("odd/domains.ctf"))), /^\d+: 0, /);
    },
  ],
  [
    "charts shrink with the window",
    async ({ page, url }) => {
      await page.setViewportSize({ width: 1500, height: 900 });
      await open(page, url, "live=all&view=lifetimes");
      await page.setViewportSize({ width: 900, height: 900 });
      await eventually(async () => {
        const wide = await page.evaluate(() =>
          [...document.querySelectorAll(".views *")]
            .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
            .map((element) => `${element.tagName} ${element.getAttribute("class")}`),
        );
        assert.deepEqual(wide, []);
      });
    },
  ],
];
