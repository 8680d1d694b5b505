// How long the page makes people wait.
//
//   HEAPLINE=target/release/heapline npm run bench -- TRACE
//
// Prints milliseconds: from the command until everything is drawn, and for each view from the end
// of a brush, or of a typed filter, until everything is drawn again. Other people's load on the
// machine is in these numbers, so each is the best and the middle of several.

import { chromium } from "playwright-core";
import { open, settled, timelinePoint } from "./page.mjs";
import { serve, trace } from "./program.mjs";

const file = process.argv[2] ?? trace("mix-ocaml53/trace.ctf");
const ROUNDS = 5;
// Milliseconds. Polling at every frame would make the browser draw every frame.
const POLLING = 5;
const VIEWS = ["overview", "flame", "table", "tree", "lifetimes", "leaks", "blocks", "source"];

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
// New tabs of a browser that people have open anyway.
const window = await browser.newContext({ viewport: { width: 1280, height: 900 } });

/** Milliseconds that something takes, sorted. */
async function times(rounds, action) {
  const taken = [];
  for (let round = 0; round < rounds; round++) taken.push(await action(round));
  return taken.sort((a, b) => a - b);
}

function print(what, taken) {
  const show = (ms) => `${ms.toFixed(0)} ms`.padStart(8);
  console.log(`${what.padEnd(24)}${show(taken[0])}${show(taken[taken.length >> 1])}`);
}

async function measured(action) {
  const start = performance.now();
  await action();
  return performance.now() - start;
}

try {
  console.log(`${"".padEnd(24)}${"best".padStart(8)}${"middle".padStart(8)}`);
  // A browser that has shown nothing yet is slow by itself.
  const first = await window.newPage();
  const warm = await serve(file);
  await open(first, warm.url);
  const started = await times(ROUNDS, async () => {
    const page = await window.newPage();
    let server;
    const taken = await measured(async () => {
      server = await serve(file);
      await open(page, server.url);
    });
    server.stop();
    await page.close();
    return taken;
  });
  print("command to drawn page", started);
  for (const view of VIEWS) {
    await open(first, warm.url, `view=${view}`);
    const brushed = await times(ROUNDS, async (round) => {
      const from = 0.1 + 0.05 * round;
      await first.mouse.move(...(await timelinePoint(first, from)));
      await first.mouse.down();
      await first.mouse.move(...(await timelinePoint(first, from + 0.2)));
      await first.mouse.move(...(await timelinePoint(first, from + 0.4)));
      return measured(async () => {
        await first.mouse.up();
        await settled(first, POLLING);
      });
    });
    print(`brush, ${view}`, brushed);
  }
  await open(first, warm.url);
  const filtered = await times(ROUNDS, async (round) => {
    return measured(async () => {
      await first.evaluate((words) => (location.hash = `where=size >= ${words}B`), 16 + 8 * round);
      await settled(first, POLLING);
    });
  });
  print("filter, flame", filtered);
  warm.stop();
} finally {
  await browser.close();
}
