// The pages of datasets: figures are those of `heapline fleet`. HEAPLINE_FLEET is the folder of heapline-fleet.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { cells } from "./page.mjs";
import { program, shell } from "./program.mjs";

// Looked for in PATH: the program under test is in another folder.
process.env.PATH = `${process.env.HEAPLINE_FLEET}:${process.env.PATH}`;

/** Few runs of several services and versions, of small programs. */
const RUNS = 60;
const BLOCKS = 3000;

let started = null;

/** A viewer of a dataset, made once. */
function viewer(tools) {
  started ??= start(tools);
  return started;
}

async function start({ heapline, scratch, serve }) {
  const traces = join(scratch, "runs");
  const dataset = join(scratch, "profiles");
  execFileSync(join(dirname(program), "make-fleet"), [traces, String(RUNS), String(BLOCKS)]);
  for (const service of await readdir(traces)) {
    for (const version of await readdir(join(traces, service))) {
      const folder = join(traces, service, version);
      const files = (await readdir(folder)).map((name) => join(folder, name));
      const labels = ["--label", `service=${service}`, "--label", `version=${version}`];
      heapline("dataset", "add", dataset, ...files, ...labels);
    }
  }
  return { dataset, url: await serve(dataset) };
}

/** Opens a page, and waits for its answer. */
async function open(page, url, hash = "") {
  await page.goto("about:blank");
  await page.goto(`${url}#${hash}`);
  await settled(page);
}

async function settled(page) {
  await page.locator("#view .rows-body .row, #view .fleet-series, #view .empty").first().waitFor();
  await page.waitForFunction(() => document.querySelector("#view .stale, #view [role=status]") === null);
}

/** The cells of a table on the terminal: columns are apart by two spaces or more. */
function tableLines(text) {
  return text
    .split("\n")
    .filter((line) => /^ +[-+<\d]/.test(line))
    .map((line) => line.trim().split(/ {2,}/));
}

/** A report whose numbers are rounded: sums depend on the order in which threads add them up. */
function rounded(json) {
  return JSON.parse(json, (_, value) => (typeof value === "number" ? Number(value.toPrecision(9)) : value));
}

/** The groups of the rows on the screen. */
async function groups(page) {
  const names = page.locator(".rows-body .row .name");
  // The parts of a name are elements of their own, so that the outer ones are cut off first.
  const texts = await names.evaluateAll((cells) =>
    cells.map((cell) => Array.from(cell.childNodes, (part) => part.textContent)),
  );
  return texts.map((parts) => parts.flatMap((part) => part.split(/\s+/)).filter((word) => word !== ""));
}

export const fleetTests = [
  [
    "a dataset opens with its runs, and says what grew",
    async (tools) => {
      const { page, heapline } = tools;
      const { dataset, url } = await viewer(tools);
      await open(page, url);
      const facts = await page.locator(".facts").innerText();
      assert.ok(facts.includes(`${RUNS} runs`), facts);
      assert.ok(facts.includes("4 services"), facts);
      assert.equal(await page.locator("h1").textContent(), "profiles");
      const { tested } = heapline("fleet", "regressions", dataset, "--json");
      assert.ok((await page.locator(".toolbar").innerText()).includes(`${tested} groups tested`));
    },
  ],
  [
    "the top of a dataset is what heapline fleet top prints",
    async (tools) => {
      const { page, heapline } = tools;
      const { dataset, url } = await viewer(tools);
      await open(page, url, "fleet=top");
      const printed = tableLines(heapline("fleet", "top", dataset)).slice(0, 10);
      const [means, percents, found] = [await cells(page, 1), await cells(page, 2), await groups(page)];
      printed.forEach(([mean, percent, , ...group], k) => {
        assert.deepEqual([means[k], percents[k], ...found[k]], [mean, percent, ...group]);
      });
      // By another property, and filtered.
      await page.getByLabel("Sites by").selectOption("none");
      await settled(page);
      assert.equal((await groups(page)).length, 4);
      await page.locator(".search input").fill("shop");
      assert.deepEqual(await groups(page), [["shop"]]);
      assert.ok(page.url().includes("rows=shop"));
    },
  ],
  [
    "versions of a dataset are compared as heapline fleet diff compares them",
    async (tools) => {
      const { page, heapline } = tools;
      const { dataset, url } = await viewer(tools);
      await open(page, url, "fleet=compare&from=1.0&to=2.0&amount=live-at-end");
      const options = ["--by", "version,service,function", "--measure", "live-at-end"];
      const report = heapline("fleet", "diff", dataset, "1.0", "2.0", ...options, "--rows", "1000", "--json");
      const verdicts = await cells(page, 6);
      assert.ok(verdicts.length > 10);
      report.rows.slice(0, verdicts.length).forEach((row, k) => {
        assert.equal(verdicts[k], row.is_significant ? "● real" : "○ chance");
      });
      const printed = tableLines(heapline("fleet", "diff", dataset, "1.0", "2.0", ...options)).slice(0, 10);
      const [changes, percents, found] = [await cells(page, 1), await cells(page, 2), await groups(page)];
      printed.forEach(([change, percent, , , , ...group], k) => {
        assert.deepEqual([changes[k], percents[k], ...found[k]], [change, percent, ...group]);
      });
      // The command of the page prints the same.
      await page.getByRole("button", { name: "Copy as command" }).click();
      const command = await page.evaluate(() => navigator.clipboard.readText());
      assert.deepEqual(rounded(shell(`${command} --json`)), rounded(JSON.stringify(report)));
      // Sorted by another column.
      await page.getByRole("button", { name: "After" }).click();
      const after = report.rows.map((row) => row.after.mean).sort((a, b) => b - a);
      const first = report.rows.find((row) => row.after.mean === after[0]);
      assert.deepEqual((await groups(page))[0], Object.values(first.group));
      // Versions are chosen from those of the dataset.
      await page.getByLabel("Before").selectOption("1.2");
      await settled(page);
      assert.ok(page.url().includes("from=1.2"));
    },
  ],
  [
    "the trend of a dataset has the points of heapline fleet trend",
    async (tools) => {
      const { page, heapline } = tools;
      const { dataset, url } = await viewer(tools);
      await open(page, url, "fleet=trend&service=shop");
      const { series } = heapline("fleet", "trend", dataset, "--by", "version,service", "--service", "shop", "--json");
      assert.equal(series.length, 1);
      assert.equal(await page.locator(".fleet-line circle").count(), series[0].points.length);
      const printed = heapline("fleet", "trend", dataset, "--by", "version,service", "--service", "shop");
      const lines = tableLines(printed).map(([, , mean]) => mean);
      assert.deepEqual(await page.locator(".fleet-series tbody td:nth-child(3)").allInnerTexts(), lines);
      await page.locator(".fleet-line circle").last().hover();
      const tip = await page.locator(".tip-text").innerText();
      assert.ok(tip.includes(lines.at(-1)), tip);
    },
  ],
  [
    "a wrong condition on runs says what is wrong, and a right one takes effect",
    async (tools) => {
      const { page, expectErrors } = tools;
      const { url } = await viewer(tools);
      await open(page, url, "fleet=top");
      const field = page.getByLabel("Runs", { exact: true });
      await field.fill("dy > '2020'");
      await field.press("Enter");
      await page.locator("#view [role=alert]").filter({ hasText: "dy" }).waitFor();
      await field.fill("version = '1.0'");
      await field.press("Enter");
      await settled(page);
      assert.ok((await page.locator(".toolbar").innerText()).includes(`mean of ${RUNS / 5} runs`));
      expectErrors(/400/);
    },
  ],
  [
    "pages of datasets are accessible, in light and in dark",
    async (tools) => {
      const { page } = tools;
      const { url } = await viewer(tools);
      const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        for (const view of ["regressions", "compare", "top", "trend"]) {
          await open(page, url, `fleet=${view}`);
          await page.evaluate(axe);
          const { violations } = await page.evaluate(() => globalThis.axe.run());
          assert.deepEqual(
            violations.map(({ id, nodes }) => [id, nodes.map((node) => node.html).slice(0, 3)]),
            [],
            `${view}, ${colorScheme}`,
          );
        }
      }
    },
  ],
];
