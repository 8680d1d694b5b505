// The page when its server is stopped, and when another one is started in its place.

import assert from "node:assert/strict";
import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { assertHeadline, chosen, headline, open, settled } from "./page.mjs";
import { serve } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";

/** Starts a server at the address of one that has ended. */
function serveAt(url, file) {
  return serve(file, "--port", new URL(url).port);
}

export const connectionTests = [
  [
    "a server of another trace at the same address is noticed: the page is loaded again and says so",
    async ({ page, heapline, trace, expectErrors }) => {
      const first = await serve(trace(MIX));
      await open(page, first.url, "live=all");
      first.stop();
      await first.exit;
      const other = trace("mix-ocaml413/trace.ctf");
      const second = await serveAt(first.url, other);
      try {
        await page.keyboard.press("2");
        await page.locator(".notice", { hasText: "another recording now: trace.ctf" }).waitFor();
        await settled(page);
        await assertHeadline(page, heapline("summary", other));
        assert.equal(await chosen(page, "view"), "table");
        const report = heapline("hotspots", other, "--json");
        assert.equal(await page.locator(".rows-body .name").first().textContent(), report.rows[0].label.name);
        expectErrors(/ERR_/);
      } finally {
        second.stop();
      }
    },
  ],
  [
    "a trace that is overwritten is noticed, and the page says what shows the new one",
    async ({ page, scratch, trace }) => {
      const file = join(scratch, "again.ctf");
      await copyFile(trace(MIX), file);
      const server = await serve(file);
      try {
        await open(page, server.url, "live=all");
        const before = await headline(page);
        await copyFile(trace("mix-ocaml413/trace.ctf"), file);
        await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
        const said = page.locator(".connection", { hasText: "again.ctf has been overwritten since it was loaded" });
        await said.locator("code", { hasText: `heapline view ${file}` }).waitFor();
        assert.deepEqual(await headline(page), before);
      } finally {
        server.stop();
      }
    },
  ],
  [
    "a server that was stopped is waited for; meanwhile the numbers are marked as old",
    async ({ page, trace, expectErrors }) => {
      const first = await serve(trace(MIX));
      await open(page, first.url, "live=all&view=table");
      const before = await headline(page);
      first.stop();
      await first.exit;
      await page.locator(".filter-input").fill("promoted");
      await page.locator(".connection", { hasText: "The server does not answer" }).waitFor();
      await page.locator(".headline.stale").waitFor();
      await page.locator(".table-box.stale").waitFor();
      assert.deepEqual(await headline(page), before);
      const second = await serveAt(first.url, trace(MIX));
      try {
        await page.locator(".connection").waitFor({ state: "detached" });
        await settled(page);
        assert.notDeepEqual(await headline(page), before);
        expectErrors(/ERR_/);
      } finally {
        second.stop();
      }
    },
  ],
];
