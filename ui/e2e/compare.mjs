// Leaks and comparisons.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { brush, chosen, flamePoint, nameAt, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const compareTests = [
  [
    "two traces are compared at first, and the header names the other one",
    async ({ page, serve, trace }) => {
      const url = await serve(trace(MIX), "--against", trace("mix-ocaml413/trace.ctf"));
      await page.goto(url);
      await page.locator(".compare").waitFor();
      assert.equal(await chosen(page, "view"), "compare");
      assert.match(await page.locator(".facts").textContent(), /compared with .*trace\.ctf/);
    },
  ],
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
      await open(page, url, "view=compare&lists=all");
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
  [
    "a comparison as a flame graph has the numbers of heapline diff --tree",
    async ({ page, serve, heapline, trace }) => {
      const old = trace("mix-ocaml413/trace.ctf");
      const url = await serve(trace(MIX), "--against", old);
      await open(page, url, "view=compare&of=end&diffShape=flame&unfolded");
      await page.locator(".flame-sticky canvas").waitFor();
      const report = heapline("diff", old, trace(MIX), "--of", "end", "--tree", "--min", "0.1%", "--json");
      const { nodes, labels, total } = report;
      // The largest box of each of the first two rows is at the left edge.
      for (const depth of [0, 1]) {
        const [x, y] = await flamePoint(page, 1 + depth, 0.02);
        await page.mouse.move(x, y);
        const tip = await page.locator(".frame-tip").innerText();
        const name = await page.locator(".frame-tip-name").textContent();
        const found = nodes.label.findIndex(
          (label, i) => labels[label]?.name === name && depthOf(nodes.parent, i) === depth,
        );
        assert.ok(found >= 0, name);
        const text = (value) => `${value[0]} ± ${value[1]}`;
        for (const [title, value, error] of [
          ["Before", nodes.before[found], nodes.before_error[found]],
          ["After", nodes.after[found], nodes.after_error[found]],
          ["Change", nodes.change[found], nodes.change_error[found]],
        ]) {
          const shown = numbersIn(new RegExp(`${title}\\s+(.*)`).exec(tip)[1]);
          assert.ok(
            Math.abs(shown[0] - value) <= Math.abs(value) * 0.01 && Math.abs(shown[1] - error) <= error * 0.06,
            `${title}: ${text(shown)} instead of ${text([value, error])}`,
          );
        }
        const samples = `${nodes.before_samples[found]} before, ${nodes.after_samples[found]} after`;
        assert.ok(tip.replaceAll(",", "").includes(samples.replaceAll(",", "")), tip);
        assert.ok(tip.includes(nodes.is_real[found] ? "is significant" : "within the sampling error"), tip);
      }
      const line = await page.locator(".compare-total").innerText();
      assert.match(line, /before \(mix-ocaml413\/trace\.ctf\)/);
      assert.match(line, /after \(mix-ocaml53\/trace\.ctf\)/);
      assert.match(line, new RegExp(`${nodes.parent.length} boxes, ${report.real_changes} called real`));
      assert.ok(total.is_real && line.includes("● real"));
      await page.getByRole("button", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.match(command, /^heapline diff \S+ \S+ --tree --of end --min 0.1%$/);
    },
  ],
  [
    "functions that vanished are listed, and shown by their width before",
    async ({ page, serve, heapline, trace }) => {
      const old = trace("mix-ocaml413/trace.ctf");
      const url = await serve(trace(MIX), "--against", old);
      await open(page, url, "view=compare&of=peak&diffShape=flame");
      const report = heapline("diff", old, trace(MIX), "--of", "peak", "--tree", "--min", "0.1%", "--json");
      const { nodes, labels } = report;
      const gone = nodes.parent
        .map((_, i) => i)
        .filter((i) => {
          const isGone = (k) => nodes.after_samples[k] === 0 && nodes.before_samples[k] > 0;
          const parent = nodes.parent[i];
          return isGone(i) && nodes.label[i] >= 0 && (parent < 0 || !isGone(parent));
        });
      assert.ok(gone.length > 0);
      await page.getByRole("button", { name: `${gone.length} vanished` }).click();
      const first = page.getByRole("menuitem").first();
      const name = await first.textContent();
      await first.click();
      await settled(page);
      assert.equal(await chosen(page, "diffWidth"), "before");
      assert.notEqual(await chosen(page, "node"), null);
      const largest = gone.reduce((a, b) => (nodes.before[a] >= nodes.before[b] ? a : b));
      assert.ok(name.startsWith(labels[nodes.label[largest]].name), name);
    },
  ],
  [
    "windows of different lengths are scaled to the same time, unless asked otherwise",
    async ({ page, url, heapline, trace }) => {
      const windows = ["0s..0.01s", "0.01s..0.04s"];
      const hash = "view=compare&before=0..0.01&after=0.01..0.04";
      const report = (...more) =>
        heapline("diff", trace(MIX), ...windows.flatMap((one) => ["--window", one]), ...more, "--json");
      await open(page, url, hash);
      const scaled = report();
      assert.equal(scaled.per, "time");
      const line = page.locator(".compare-total");
      assert.match(await line.innerText(), /after × 0\.333 to the same time/);
      assert.ok(
        (await line.innerText()).includes(
          `(${scaled.total.percent > 0 ? "+" : ""}${scaled.total.percent.toFixed(1)} %)`,
        ),
      );
      await page.getByLabel("Scale").selectOption("none");
      await settled(page);
      const plain = report("--per", "none");
      assert.equal(await page.locator(".scaled").count(), 0);
      assert.ok((await line.innerText()).includes(`(+${plain.total.percent.toFixed(1)} %)`), await line.innerText());
      await page.getByRole("radio", { name: "Flame graph" }).click();
      await page.locator(".flame-sticky canvas").waitFor();
      assert.equal(await chosen(page, "per"), "none");
      assert.ok((await line.innerText()).includes(`(+${plain.total.percent.toFixed(1)} %)`));
    },
  ],
  [
    "the flame graph of a comparison is reached by keys, and functions are hidden from it",
    async ({ page, url }) => {
      await open(page, url, "view=compare&diffShape=flame&unfolded");
      await page.locator(".flame-sticky canvas").focus();
      await page.keyboard.press("ArrowDown");
      await page.locator(".spoken", { hasText: /change .*(real|sampling error)/ }).waitFor({ state: "attached" });
      const name = await nameAt(page, 2, 0.02);
      await page.keyboard.press("h");
      await settled(page);
      assert.equal(await chosen(page, "hide"), name);
      assert.equal(await chosen(page, "view"), "compare");
      await page.keyboard.press("v");
      await settled(page);
      assert.equal(await chosen(page, "diffWidth"), "before");
    },
  ],
  [
    "dragging with Ctrl makes the second window, and shows the difference at once",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all");
      await brush(page, 0.1, 0.3);
      const window = await chosen(page, "window");
      await page.keyboard.down("Control");
      await brush(page, 0.5, 0.9);
      await page.keyboard.up("Control");
      assert.equal(await chosen(page, "view"), "compare");
      assert.equal(await chosen(page, "before"), window);
      await page.locator(".flame-sticky canvas").waitFor();
      const [before, after] = [window, await chosen(page, "after")].map((span) => `${span.replace("..", "s..")}s`);
      const report = heapline(
        "diff",
        trace(MIX),
        "--window",
        before,
        "--window",
        after,
        "--tree",
        "--min",
        "0.1%",
        "--json",
      );
      assert.equal(report.per, "time");
      const line = await page.locator(".compare-total").innerText();
      assert.ok(line.includes(`${report.nodes.parent.length} boxes, ${report.real_changes} called real`), line);
      await page.goBack();
      await settled(page);
      assert.equal(await chosen(page, "view"), "flame", "one step back undoes the whole drag");
    },
  ],
  [
    "without a window, dragging with Ctrl compares with the time before",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.keyboard.down("Control");
      await brush(page, 0.5, 0.9);
      await page.keyboard.up("Control");
      const after = await chosen(page, "after");
      assert.equal(await chosen(page, "before"), `0..${after.split("..")[0]}`);
    },
  ],
  [
    "a file that is dropped onto the page is compared with",
    async ({ page, serve, heapline, trace, expectErrors }) => {
      const old = trace("mix-ocaml413/trace.ctf");
      const url = await serve(trace(MIX));
      await open(page, url, "view=table&of=end");
      await dropFile(page, old, "old.ctf");
      await page.locator(".compare-total", { hasText: "before (old.ctf)" }).waitFor();
      await settled(page);
      assert.equal(await chosen(page, "view"), "compare");
      const report = heapline("diff", old, trace(MIX), "--of", "end", "--tree", "--min", "0.1%", "--json");
      const line = await page.locator(".compare-total").innerText();
      assert.ok(line.includes(`${report.nodes.parent.length} boxes, ${report.real_changes} called real`), line);
      // What is not a trace is said to be none, and nothing changes.
      await dropFile(page, trace("README.md"), "README.md");
      await page.locator(".notice", { hasText: "README.md" }).waitFor();
      expectErrors(/422/);
      // The same by keyboard.
      const choosing = page.waitForEvent("filechooser");
      await page.getByRole("button", { name: "Other file" }).focus();
      await page.keyboard.press("Enter");
      await (await choosing).setFiles(trace("odd/peakend.ctf"));
      await page.locator(".compare-total", { hasText: "before (peakend.ctf)" }).waitFor();
    },
  ],
];

/** Drops a file onto the page. */
async function dropFile(page, path, name) {
  const bytes = [...(await readFile(path))];
  const transfer = await page.evaluateHandle(
    ([bytes, name]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], name));
      return transfer;
    },
    [bytes, name],
  );
  await page.dispatchEvent("#view", "dragover", { dataTransfer: transfer });
  await page.locator(".drop-layer").waitFor();
  await page.dispatchEvent("#view", "drop", { dataTransfer: transfer });
}

/** The number of nodes above one. */
function depthOf(parents, node) {
  let depth = 0;
  for (let i = parents[node]; i >= 0; i = parents[i]) depth += 1;
  return depth;
}

const UNITS = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 };

/** The amount and the error of a text such as `+1.2 ± 0.3 MiB`, in bytes. */
function numbersIn(text) {
  const [, value, , error = "0", unit] = /([+-]?[\d.]+)( ± ([\d.]+))? (\w+)/.exec(text);
  return [Number(value) * UNITS[unit], Number(error) * UNITS[unit]];
}
