// The page of a recording that still runs.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { assertHeadline, chosen, eventually, headline, open, settled } from "./page.mjs";
import { program, root } from "./program.mjs";

/** Starts `heapline record --view` on a program that allocates when it is told to. */
export async function recordLive(scratch) {
  const folder = join(scratch, "live");
  await mkdir(folder, { recursive: true });
  // The compiler writes beside the source.
  const source = join(folder, "paces.ml");
  await copyFile(join(root, "tests/ocaml/programs/paces.ml"), source);
  execFileSync("ocamlfind", ["ocamlopt", "-g", "-o", join(folder, "paces"), source], { cwd: folder });
  const trace = join(folder, "live.ctf");
  const options = ["--view", "--no-browser", "--port", "0", "--rate", "1", "--force", "-o", trace];
  const child = spawn(program, ["record", ...options, "--", join(folder, "paces")], { stdio: "pipe" });
  let said = "";
  let printed = "";
  const waiters = new Set();
  const wake = () => {
    for (const waiter of waiters) waiter();
  };
  child.stderr.on("data", (data) => {
    said += data;
    wake();
  });
  child.stdout.on("data", (data) => {
    printed += data;
    wake();
  });
  const exit = new Promise((resolve) => child.on("exit", resolve));
  const until = (what) =>
    new Promise((resolve, reject) => {
      const look = () => {
        const found = what();
        if (!found) return;
        waiters.delete(look);
        resolve(found);
      };
      waiters.add(look);
      void exit.then((code) => reject(new Error(`heapline record ended with ${code}: ${said}`)));
      look();
    });
  const url = await until(() => /http:\/\/127\.0\.0\.1:\d+\//.exec(said)?.[0]);
  let lines = 0;
  return {
    url,
    trace,
    exit,
    /** Has the program do something, and waits until it is done. */
    async tell(line) {
      child.stdin.write(`${line}\n`);
      lines += 1;
      const wanted = lines;
      await until(() => printed.split("\n").length > wanted);
    },
    async end() {
      child.stdin.end();
      await until(() => said.includes("the page stays"));
    },
    /** Ends the viewer, once the program has ended. */
    stop: () => child.kill("SIGINT"),
    /** Ends everything. */
    kill() {
      child.stdin.end();
      child.kill("SIGKILL");
    },
  };
}

/** Waits until the server has as many blocks. */
async function served(url, blocks) {
  for (;;) {
    const summary = await (await fetch(`${url}api/v1/summary`)).json();
    if (summary.subject.sampled_blocks >= blocks) return summary;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Waits until the number of blocks live now is this, as the page shows it. */
async function shows(page, blocks) {
  await page.waitForFunction(
    (blocks) => document.querySelectorAll(".tile")[2]?.textContent.includes(`${blocks} blocks`),
    blocks,
  );
  await settled(page);
}

export const liveTests = [
  [
    "a page that records every block says now for the end, and nothing of a sampling error",
    async ({ page, scratch }) => {
      const recording = await recordLive(scratch);
      try {
        await recording.tell(2000);
        for (const view of ["overview", "leaks", "lifetimes", "blocks", "compare", "source"]) {
          await open(page, recording.url, `view=${view}&live=all`);
          await page.locator(".live-mark.is-live").waitFor();
          const said = await page.locator("main").innerText();
          // The halves of the run have an end.
          const text = said.replace("Live at the end of each window", "");
          assert.ok(!/at (the )?end\b/i.test(text), `${view}: ${text.match(/.*at (the )?end\b.*/i)?.[0]}`);
          assert.doesNotMatch(said, /sampling error|error of the difference/, view);
        }
        await page.keyboard.press("?");
        const help = await page.locator("dialog").innerText();
        assert.match(help, /live now/);
        assert.match(help, /Every block was recorded: amounts are exact/);
        assert.doesNotMatch(help, /sampling error/);
      } finally {
        recording.kill();
      }
    },
  ],
  [
    "the page of a recording grows with it, and keeps its state",
    async ({ page, scratch, heapline }) => {
      const recording = await recordLive(scratch);
      try {
        const { url } = recording;
        await recording.tell(2000);
        // So low that the table has to be scrolled.
        await page.setViewportSize({ width: 1280, height: 620 });
        await open(page, url, "live=end&view=table&by=size&rows=w");
        await page.locator(".live-mark.is-live").waitFor();
        assert.match(await page.locator(".tile-name").nth(2).textContent(), /Live now/);
        await recording.tell(18000);
        await shows(page, "40.0 k");
        // What has been chosen stays: tab, filter of rows, the selected row, where it is scrolled to.
        await page.locator(".rows-body .row").nth(3).click();
        await page.evaluate(() => scrollTo(0, 100));
        const scrolled = await page.evaluate(() => scrollY);
        assert.ok(scrolled > 0, "there is something to scroll");
        const before = await headline(page);
        await recording.tell(80000);
        await shows(page, "200 k");
        assert.notDeepEqual(await headline(page), before);
        assert.equal(await page.evaluate(() => scrollY), scrolled);
        assert.equal(await page.locator(".rows-body .row.is-selected").count(), 1);
        assert.deepEqual([await chosen(page, "view"), await chosen(page, "rows")], ["table", "w"]);
        // Paused, it shows one moment whatever is asked.
        await page.locator(".live-mark").click();
        await page.locator(".live-mark", { hasText: "paused" }).waitFor();
        const paused = await headline(page);
        await recording.tell(100000);
        await served(url, 400_000);
        await page.keyboard.press("1");
        await page.locator(".flame-box").waitFor();
        await settled(page);
        assert.deepEqual(await headline(page), paused);
        await page.getByLabel(/^Flame graph of Live now/).waitFor();
        await page.keyboard.press("n");
        await shows(page, "400 k");
        await recording.tell("drop");
        await recording.end();
        await page.locator(".live-mark", { hasText: "recording ended" }).waitFor();
        await settled(page);
        assert.match(await page.locator(".tile-name").nth(2).textContent(), /Live at the end/);
        await page.getByLabel(/^Flame graph of Live at the end/).waitFor();
        const summary = heapline("summary", recording.trace);
        // Numbers of a recording stay until the next ones are there.
        await eventually(() => assertHeadline(page, summary));
        assert.equal(await chosen(page, "live"), "end");
        recording.stop();
        assert.equal(await recording.exit, 3, "the exit code of the program");
      } finally {
        recording.kill();
      }
    },
  ],
  [
    "windows that end now go along, others stay",
    async ({ page, scratch }) => {
      const recording = await recordLive(scratch);
      try {
        await recording.tell(5000);
        await open(page, recording.url, "live=all");
        await page.locator(".live-mark.is-live").waitFor();
        const duration = async () => (await (await fetch(`${recording.url}api/v1/info`)).json()).duration;
        // Before the layers are there, keys have nothing to move through.
        await page.locator(".layers button").first().waitFor();
        await page.locator(".plot canvas").focus();
        await page.keyboard.press("Shift+ArrowLeft");
        await page.keyboard.press("[");
        const first = await chosen(page, "window");
        const [from, to] = first.split("..").map(Number);
        await recording.tell(5000);
        await page.waitForFunction(
          (to) => Number(new URLSearchParams(location.hash.slice(1)).get("window").split("..")[1]) > to,
          to,
        );
        const [grown] = (await chosen(page, "window")).split("..").map(Number);
        assert.equal(grown, from);
        const fixed = `${from}..${(from + to) / 2}`;
        await page.evaluate((fixed) => (location.hash = `live=all&window=${fixed}`), fixed);
        await settled(page);
        const before = await duration();
        await recording.tell(5000);
        while ((await duration()) <= before) await new Promise((resolve) => setTimeout(resolve, 50));
        await page.waitForTimeout(1500);
        assert.equal(await chosen(page, "window"), fixed);
      } finally {
        recording.kill();
      }
    },
  ],
];
