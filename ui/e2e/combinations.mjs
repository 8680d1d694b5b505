// Generated combinations of choices: the page shows what the commands print with the same options.

import assert from "node:assert/strict";
import { assertHeadline, cells, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";
const DURATION = 0.041921;
const COMBINATIONS = 60;

/** The same numbers in every run. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

const VIEWS = ["table", "table", "table", "tree", "lifetimes", "leaks", "compare"];
const FILTERS = ["", "", "size < 1000w", 'inside "Mix.words"', "promoted or heap = major", "lifetime > 1ms"];
const HIDDEN = [[], [], ["Stdlib.*"], ["Stdlib.Map.Make.bal", "Mix.cached"]];
const GROUPS = ["function", "site", "module", "size", "age"];
/** Columns of the table, and what the command calls them. */
const SORTS = { own: "allocated", inclusive: "inclusive", end: "end", size: "size", life: "lifetime", name: "name" };

function combination(random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  const time = () => Number((random() * DURATION).toFixed(6));
  const [from, to] = [time(), time()].sort((a, b) => a - b);
  return {
    view: pick(VIEWS),
    where: pick(FILTERS),
    window: random() < 0.5 && to > from ? { from, to } : null,
    windowOf: pick(["allocated", "live", "collected"]),
    live: pick(["all", "peak", "end", time()]),
    hide: pick(HIDDEN),
    ownCode: pick(["lists", "lists", "everywhere", "nowhere"]),
    by: pick(GROUPS),
    sort: pick(Object.keys(SORTS)),
    ascending: random() < 0.3,
    of: pick(["allocated", "end"]),
  };
}

function hashOf(choice) {
  const hash = new URLSearchParams({ view: choice.view, live: String(choice.live), by: choice.by, sort: choice.sort });
  if (choice.where) hash.set("where", choice.where);
  if (choice.window) hash.set("window", `${choice.window.from}..${choice.window.to}`);
  hash.set("windowOf", choice.windowOf);
  for (const name of choice.hide) hash.append("hide", name);
  if (choice.ownCode === "everywhere") hash.set("ownCode", "");
  if (choice.ownCode === "nowhere") hash.set("lists", "all");
  if (choice.ascending) hash.set("ascending", "");
  hash.set("of", choice.of);
  hash.set("treeDirection", "up");
  hash.set("open", "-");
  return hash.toString();
}

/** The options of attribution. */
const OWN_CODE = { lists: [], everywhere: ["--own-code"], nowhere: ["--all-code"] };

/** Options of commands. */
function conditions(list) {
  return list.filter((text) => text !== "").flatMap((text) => ["--where", text]);
}

async function assertView(page, choice, run) {
  const { where, live, hide } = choice;
  const window = choice.window ? `${choice.windowOf} in ${choice.window.from}s..${choice.window.to}s` : "";
  const moment = live === "all" ? "" : `live at ${typeof live === "number" ? `${live}s` : live}`;
  const hidden = [...hide.flatMap((name) => ["--hide", name]), ...OWN_CODE[choice.ownCode]];
  const names = (rows) => rows.map((row) => row.label.name + (row.label.place ?? ""));
  const shown = (selector) => page.locator(selector).allTextContents();
  switch (choice.view) {
    case "table": {
      const order = ["--sort", SORTS[choice.sort], ...(choice.ascending ? ["--reverse"] : [])];
      const options = ["--by", choice.by, "--rows", "1000", ...order, ...hidden];
      const report = run("hotspots", ...conditions([where, window, moment]), ...options);
      assert.deepEqual(await shown(".rows-body .name"), names(report.rows));
      const total = report.total.allocated.bytes.value;
      const percent = (value) => (value > 0 && value / total < 0.0005 ? "< 0.1" : ((100 * value) / total).toFixed(1));
      assert.deepEqual(
        (await cells(page, 1)).map((text) => /(?:< )?[\d.]+ %$/.exec(text)?.[0]),
        report.rows.map((row) => `${percent(row.allocated.bytes.value)} %`),
      );
      return;
    }
    case "tree": {
      const report = run("tree", "--bottom-up", "--min", "0.1%", ...conditions([where, window, moment]), ...hidden);
      const roots = report.nodes.filter((node) => node.parent === null && node.kind !== "other");
      const rows = (await shown(".rows-body .name")).filter((text) => !/other \(/.test(text));
      assert.deepEqual(
        rows.map((text) => text.replace(/^›/, "")),
        names(roots),
      );
      return;
    }
    case "lifetimes": {
      const report = run("stats", ...conditions([where, window, moment]));
      if (report.total.samples === 0) return;
      const count = report.subject.sampled_blocks.toLocaleString("en-US");
      assert.match(await page.locator(".view .toolbar").textContent(), new RegExp(`in ${count} sampled blocks`));
      return;
    }
    case "leaks": {
      const report = run("leaks", "--rows", "100", ...conditions([where, window]), ...hidden);
      assert.deepEqual(await shown(".leak:not(.leak-head) .name"), names(report.rows));
      return;
    }
    case "compare": {
      const half = Number((DURATION / 2).toFixed(6));
      const windows = ["--window", `0s..${half}s`, "--window", `${half}s..${DURATION}s`];
      const options = ["--of", choice.of, "--rows", "5000", ...windows, ...hidden];
      const report = run("diff", ...conditions([where]), ...options);
      assert.deepEqual(await shown(".diff-box .rows-body .name"), names(report.rows));
      return;
    }
  }
}

export const combinationTests = [
  [
    "all views show what the commands print, whatever is combined",
    async ({ page, url, heapline, trace }) => {
      // So high that all rows are in the document.
      await page.setViewportSize({ width: 1600, height: 1600 });
      const random = generator(18);
      for (let n = 0; n < COMBINATIONS; n++) {
        const choice = combination(random);
        const hash = hashOf(choice);
        await open(page, url, hash);
        await page.locator("#view :is(.rows-body, .leaks, .cards, .empty)").first().waitFor({ state: "attached" });
        await settled(page);
        const run = (command, ...options) => heapline(command, trace(MIX), ...options, "--json");
        try {
          await assertView(page, choice, run);
          const window =
            choice.window && choice.view !== "compare"
              ? `${choice.windowOf} in ${choice.window.from}s..${choice.window.to}s`
              : "";
          await assertHeadline(page, heapline("summary", trace(MIX), ...conditions([choice.where, window])));
        } catch (error) {
          throw new Error(`${hash}: ${error.message}`, { cause: error });
        }
      }
    },
  ],
];
