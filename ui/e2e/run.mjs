// End-to-end tests in a real browser.
//
//   HEAPLINE=target/debug/heapline CHROMIUM=/usr/bin/chromium npm run e2e [PART OF A NAME]
//   HEAPLINE_FLEET=FOLDER npm run e2e     only the pages of datasets, with heapline-fleet in this folder: cargo xtask fleet
//   PAGE=dist npm run e2e     after `npm run build`: with this page in place of the program's, except in report files
//   SHARD=1/2 npm run e2e     every second test, the first one included
//   SLOW=300 npm run e2e      delays answers by up to 300 ms, to find tests that do not wait for them
//
// Each test gets a page of its own. What a page writes to its console as an error fails the test.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { chromium } from "playwright-core";
import { blockTests } from "./blocks.mjs";
import { collectorTests } from "./collector.mjs";
import { combinationTests } from "./combinations.mjs";
import { compareTests } from "./compare.mjs";
import { connectionTests } from "./connection.mjs";
import { filterTests } from "./filter.mjs";
import { flameTests } from "./flame.mjs";
import { fleetTests } from "./fleet.mjs";
import { overviewTests } from "./overview.mjs";
import { heapTests } from "./heap.mjs";
import { liveTests } from "./live.mjs";
import { peakTests } from "./peak.mjs";
import { heapline, serve, trace } from "./program.mjs";
import { reportTests } from "./report.mjs";
import { saveTests } from "./save.mjs";
import { sourceTests } from "./source.mjs";
import { tableTests } from "./table.mjs";
import { timelineTests } from "./timeline.mjs";
import { viewTests } from "./views.mjs";

const fileTests = [
  ...viewTests,
  ...overviewTests,
  ...blockTests,
  ...peakTests,
  ...timelineTests,
  ...collectorTests,
  ...flameTests,
  ...tableTests,
  ...sourceTests,
  ...filterTests,
  ...compareTests,
  ...combinationTests,
  ...connectionTests,
  ...heapTests,
  ...liveTests,
  ...reportTests,
  ...saveTests,
];
const tests = process.env.HEAPLINE_FLEET ? fleetTests : fileTests;
const wanted = process.argv[2] ?? "";
const [shard, shards] = (process.env.SHARD ?? "1/1").split("/").map(Number);
const scratch = await mkdtemp(join(tmpdir(), "heapline-e2e-"));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  // Tests run as root in containers, where the sandbox cannot.
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
const server = await serve(trace("mix-ocaml53/trace.ctf"));
const servers = [server];
let failed = 0;

/** Answers with the page in a folder: one that was just built needs no new program. */
function fromFolder(folder) {
  return (route) => {
    const name = new URL(route.request().url()).pathname.split("/").at(-1);
    return route.fulfill({ path: join(folder, "assets", name) });
  };
}

/** Delays requests by up to so many milliseconds. */
function delayed(most) {
  return async (route) => {
    await setTimeout(Math.random() * most);
    // The page may be gone, or want something else by now.
    await route.fallback().catch(() => {});
  };
}

/** The tools of tests. */
const tools = {
  url: server.url,
  scratch,
  heapline,
  trace,
  /** Serves another trace for the rest of the run. */
  async serve(file, ...options) {
    const started = await serve(file, ...options);
    servers.push(started);
    return started.url;
  },
};

try {
  for (const [number, [name, test]] of tests.entries()) {
    if (!name.includes(wanted) || number % shards !== shard - 1) continue;
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 },
      colorScheme: "light",
      permissions: ["clipboard-read", "clipboard-write"],
    });
    if (process.env.PAGE) await context.route("**/assets/app.*", fromFolder(process.env.PAGE));
    if (process.env.SLOW) await context.route("**/*", delayed(Number(process.env.SLOW)));
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    try {
      await test({
        page,
        ...tools,
        expectErrors: (pattern) => errors.splice(0, errors.length, ...errors.filter((text) => !pattern.test(text))),
      });
      if (errors.length > 0) throw new Error(`errors on the console: ${errors.join("; ")}`);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}\n${errors.join("\n")}`);
      const picture = join(tmpdir(), `heapline-e2e-failed-${shard}-${failed}.png`);
      await page.screenshot({ path: picture }).then(
        () => console.log(`        see ${picture}`),
        () => {},
      );
    } finally {
      // Answers that a test changes may still be on their way.
      await page.unrouteAll({ behavior: "ignoreErrors" });
      await context.unrouteAll({ behavior: "ignoreErrors" });
      await context.close();
    }
  }
} finally {
  await browser.close();
  for (const { stop } of servers) stop();
  await rm(scratch, { recursive: true, force: true });
}
console.log(failed === 0 ? "all passed" : `${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
