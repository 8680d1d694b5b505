// The page of heap snapshots: figures are those of the commands.

import assert from "node:assert/strict";
import { copyFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { cells, chosen, flamePoint, nameAt, openHeap, settledHeap } from "./page.mjs";
import { shell } from "./program.mjs";

const BEFORE = "generated/server.heap";
const AFTER = "generated/server-later.heap";
const RECORDING = "generated/domains.ctf";

let url = null;

/** A viewer with everything that a snapshot can have, started once. */
async function viewer({ serve, trace }) {
  url ??= await serve(trace(AFTER), "--against", trace(BEFORE), "--trace", trace(RECORDING));
  return url;
}

/** Bytes as the page and the terminal show them. */
function bytes(n) {
  const units = ["B", "KiB", "MiB"];
  let unit = 0;
  while (Math.abs(n) >= 1023.5) {
    n /= 1024;
    unit += 1;
  }
  const digits = Number.isInteger(n) || Math.abs(n) >= 99.95 ? 0 : Math.abs(n) >= 9.995 ? 1 : 2;
  return `${n.toFixed(digits)} ${units[unit]}`;
}

/** The names of rows, without their places. */
function names(page) {
  return page.locator(".rows-body .row .name").evaluateAll((all) => all.map((name) => name.firstChild.textContent));
}

export const heapTests = [
  [
    "a snapshot opens with its program and size",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools));
      const { subject } = heapline("retained", trace(AFTER), "--json");
      const facts = await page.locator(".heap-facts").innerText();
      assert.ok(facts.includes(bytes(subject.total.bytes)), facts);
      assert.ok(facts.includes(`${subject.total.blocks.toLocaleString("en-US")} blocks`), facts);
      assert.equal(await page.locator("h1").textContent(), "server");
    },
  ],
  [
    "a box of the icicle says what heapline dominators says of it, and zooms",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=icicle");
      const tree = heapline("dominators", trace(AFTER), "--min", "0.1%", "--json");
      const name = await nameAt(page, 2, 0.1);
      const node = tree.nodes.find((node) => node.depth === 1 && node.name === name);
      const tip = await page.locator(".frame-tip").innerText();
      assert.ok(tip.includes(bytes(node.retained.bytes)), tip);
      assert.ok(tip.includes(node.retained.blocks.toLocaleString("en-US")), tip);
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)));
      assert.notEqual(await chosen(page, "node"), null);
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "node"), null);
    },
  ],
  [
    "the tree has the nodes of heapline dominators",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=tree");
      await page.getByRole("button", { name: "Open all" }).click();
      const { nodes } = heapline("dominators", trace(AFTER), "--min", "0.1%", "--json");
      const shown = await cells(page, 1);
      assert.ok(shown.length > 5);
      assert.deepEqual(
        shown,
        nodes.slice(0, shown.length).map((node) => bytes(node.retained.bytes)),
      );
    },
  ],
  [
    "the table has the rows of heapline retained, for each grouping",
    async (tools) => {
      const { page, heapline, trace } = tools;
      for (const by of ["root", "module", "definition", "closure", "kind"]) {
        await openHeap(page, await viewer(tools), `heap=retained&retainedBy=${by}`);
        const { rows } = heapline("retained", trace(AFTER), "--by", by, "--rows", "1000", "--json");
        const held = (row) => row.reached ?? row.retained;
        // Stable: rows of the same size stay in their order.
        const sorted = rows.toSorted((a, b) => held(b).bytes - held(a).bytes);
        const shown = await names(page);
        assert.deepEqual(
          shown,
          sorted.slice(0, shown.length).map((row) => row.name),
        );
        assert.ok(shown.length > 0);
        assert.ok((await cells(page, 1))[0].startsWith(bytes(held(sorted[0]).bytes)));
      }
    },
  ],
  [
    "a snapshot opens on the definitions that reach most, which columns sort, and shared memory is explained",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools));
      assert.equal(await page.locator("#view").getAttribute("aria-label"), "Retained");
      const { rows } = heapline("retained", trace(AFTER), "--rows", "1000", "--json");
      assert.equal((await names(page))[0], rows.toSorted((a, b) => b.reached.bytes - a.reached.bytes)[0].name);
      assert.ok((await cells(page, 1)).slice(0, 5).every((cell) => /^[1-9]/.test(cell)));
      await page.getByRole("button", { name: "Blocks" }).click();
      assert.equal(await chosen(page, "retainedSort"), "blocks");
      assert.equal((await names(page))[0], "Cache.table", "as most blocks");
      await page.getByRole("button", { name: "definition" }).click();
      const sorted = await names(page);
      assert.deepEqual(
        sorted,
        sorted.toSorted((a, b) => a.localeCompare(b)),
      );
      // It alone retains nearly nothing: a click shows the paths through it.
      const shared = rows.find(({ name }) => name === "Server.handle");
      assert.ok(shared.reached.bytes > 100 * shared.retained.bytes);
      await page.locator(".rows-body .row", { hasText: shared.name }).click();
      await settledHeap(page);
      assert.deepEqual([await chosen(page, "heap"), await chosen(page, "through")], ["why", shared.name]);
      assert.ok((await page.locator(".found").textContent()).startsWith(bytes(shared.reached.bytes)));
    },
  ],
  [
    "a row leads to what it retains, and the path back",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=retained");
      await page.locator(".rows-body .row", { hasText: "Cache.table" }).click();
      await page.locator(".rows-body .row", { hasText: "Hashtbl.t" }).click();
      await settledHeap(page);
      assert.equal(await chosen(page, "at"), "Cache.table > Hashtbl.t");
      const { rows } = heapline("retained", trace(AFTER), "--at", "Cache.table > Hashtbl.t", "--json");
      assert.deepEqual(
        await names(page),
        rows.map((row) => row.name),
      );
      await page.locator(".steps button", { hasText: "all" }).click();
      await settledHeap(page);
      assert.equal(await chosen(page, "at"), null);
    },
  ],
  [
    "from a retainer to sites and from a site to retainers",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=why&heldBy=Cache.table");
      const options = ["--trace", trace(RECORDING), "--rows", "100", "--json"];
      const held = heapline("why", trace(AFTER), "--held-by", "Cache.table", ...options);
      assert.ok(held.sites.length > 1);
      const sites = page.locator(".site-row");
      assert.equal(await sites.count(), held.sites.length);
      const [first] = held.sites;
      assert.ok((await sites.first().innerText()).includes(first.site.name));
      await sites.first().click();
      await settledHeap(page);
      assert.equal(await chosen(page, "site"), first.site.name);
      assert.equal(await chosen(page, "heldBy"), null);
      const allocated = heapline("why", trace(AFTER), "--site", first.site.name, ...options);
      assert.equal(await page.locator(".why-row").count(), allocated.rows.length);
      const steps = await page.locator(".why-row").first().locator(".step").allTextContents();
      assert.equal(steps.length, allocated.rows[0].path.length);
      assert.match(
        await page.locator(".found").textContent(),
        new RegExp(`from ${allocated.selected.blocks} sampled blocks`),
      );
      // And back: what the root of the path holds.
      await page.locator(".why-row .step").first().click();
      await page.getByRole("menuitem", { name: /Why: paths to what it retains/ }).click();
      assert.equal(await chosen(page, "heldBy"), allocated.rows[0].path[0].name);
    },
  ],
  [
    "blocks are selected by kind and address",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=why");
      await page.getByLabel("Paths to blocks").selectOption("kind");
      await page.locator(".why-input").fill("string");
      await page.keyboard.press("Enter");
      await settledHeap(page);
      const strings = heapline("why", trace(AFTER), "--kind", "string", "--rows", "100", "--json");
      const found = await page.locator(".found").textContent();
      assert.equal(
        found,
        `${bytes(strings.selected.bytes)}, ${strings.selected.blocks.toLocaleString("en-US")} blocks`,
      );
      await page.locator(".why-example .link").first().click();
      await settledHeap(page);
      assert.equal(await chosen(page, "address"), strings.rows[0].example);
      assert.equal(await page.locator(".why-row").count(), 1);
    },
  ],
  [
    "a name that the snapshot does not have is an error that says so",
    async (tools) => {
      const { page, expectErrors } = tools;
      await page.goto(`${await viewer(tools)}#heap=why&heldBy=Nothing`);
      await page.locator(".empty-title").waitFor();
      assert.equal(await page.locator(".empty-title").textContent(), "the snapshot has no Nothing");
      expectErrors(/400/);
    },
  ],
  [
    "the comparison has the rows of heapline diff",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=compare");
      const { rows } = heapline("diff", trace(BEFORE), trace(AFTER), "--json");
      const changes = await page.locator(".heap-diff:not(.diff-head) > :nth-child(1)").allTextContents();
      assert.deepEqual(
        changes,
        rows.map((row) => `${row.bytes > 0 ? "+" : ""}${bytes(row.bytes)}`),
      );
      // In columns, below their headings.
      const [head, row] = await page.locator(".heap-diff").evaluateAll((rows) =>
        rows.slice(0, 2).map((row) =>
          [...row.children].map((cell) => {
            const { left, right, top } = cell.getBoundingClientRect();
            return { left, right, top };
          }),
        ),
      );
      assert.ok(row.every((cell, k) => k === 0 || cell.left > row[k - 1].right));
      assert.deepEqual(
        row.map((cell) => cell.left),
        head.map((cell) => cell.left),
      );
    },
  ],
  [
    "findings have the sums of heapline findings, and lead to paths",
    async (tools) => {
      const { page, heapline, trace } = tools;
      await openHeap(page, await viewer(tools), "heap=findings");
      const report = heapline("findings", trace(AFTER), "--json");
      const sums = await page.locator(".findings .fact b").allTextContents();
      const expected = Object.values(report)
        .filter((finding) => finding.values > 0)
        .map((finding) => finding.bytes)
        .sort((a, b) => b - a);
      assert.deepEqual(sums, expected.map(bytes));
      await page.locator(".finding .link", { hasText: "Server.out" }).click();
      assert.equal(await chosen(page, "heap"), "why");
      assert.equal(await chosen(page, "heldBy"), "Server.out");
    },
  ],
  [
    "copy as command copies what prints the same",
    async (tools) => {
      const { page } = tools;
      for (const hash of [
        "",
        "heap=icicle",
        "heap=why&through=Server.handle",
        "heap=retained&retainedBy=module",
        "heap=why&kind=string",
        "heap=compare",
        "heap=findings",
      ]) {
        await openHeap(page, await viewer(tools), hash);
        await page.getByRole("button", { name: "Copy as command" }).click();
        const command = await page.evaluate(() => navigator.clipboard.readText());
        assert.match(command, /^heapline (dominators|retained|why|diff|findings) /);
        assert.ok(shell(command).startsWith("server (pid 4711)"), command);
      }
    },
  ],
  [
    "the number keys choose the views of a snapshot",
    async (tools) => {
      const { page } = tools;
      await openHeap(page, await viewer(tools));
      for (const [key, view] of [
        ["2", "icicle"],
        ["3", "tree"],
        ["4", "why"],
        ["5", "compare"],
        ["6", "findings"],
      ]) {
        await page.keyboard.press(key);
        assert.equal(await chosen(page, "heap"), view);
      }
    },
  ],
  [
    "a snapshot that is overwritten is noticed",
    async ({ page, serve, trace, scratch }) => {
      const file = join(scratch, "again.heap");
      await copyFile(trace(BEFORE), file);
      await openHeap(page, await serve(file));
      await copyFile(trace(AFTER), file);
      await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
      await page.locator(".connection", { hasText: "again.heap has been overwritten since it was loaded" }).waitFor();
    },
  ],
  [
    "a damaged snapshot says what is wrong",
    async ({ page, serve, trace, scratch, expectErrors }) => {
      const file = join(scratch, "cut.heap");
      const whole = await readFile(trace(BEFORE));
      await writeFile(file, whole.subarray(0, whole.length / 2));
      await page.goto(await serve(file));
      await page.locator(".splash-error").waitFor();
      assert.match(await page.locator(".splash-error").textContent(), /cut\.heap/);
      expectErrors(/503/);
    },
  ],
  [
    "a report file of a snapshot has the same numbers without a network",
    async ({ page, heapline, trace, scratch }) => {
      const file = join(scratch, "heap.html");
      heapline("report", trace(AFTER), "--against", trace(BEFORE), "--trace", trace(RECORDING), "-o", file);
      const url = pathToFileURL(file).href;
      await page.context().setOffline(true);
      for (const view of ["icicle", "tree", "retained", "why", "compare", "findings"]) {
        await openHeap(page, url, `heap=${view}`);
        assert.equal(await page.locator("#view .command").count(), 0, `${view} has no answer`);
      }
      await openHeap(page, url, "heap=retained");
      await page.locator(".rows-body .row", { hasText: "Cache.table" }).click();
      await settledHeap(page);
      const { rows } = heapline("retained", trace(AFTER), "--at", "Cache.table", "--json");
      assert.deepEqual(
        await names(page),
        rows.map((row) => row.name),
      );
      await openHeap(page, url, "heap=why");
      await page.locator(".site-row").first().click();
      await settledHeap(page);
      assert.ok((await page.locator(".why-row").count()) > 0);
    },
  ],
];
