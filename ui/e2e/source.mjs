// The source view: lines of files with their memory.

import assert from "node:assert/strict";
import { brush, chosen, flamePoint, nameAt, open, settled } from "./page.mjs";
import { root, shell } from "./program.mjs";

const MIX = "mix-ocaml53/trace.ctf";
const SOURCES = `${root}fixtures`;

/** Serves the trace with its sources. */
function withSources({ serve, trace }) {
  return serve(trace(MIX), "--source", SOURCES);
}

/** The lines with memory on the screen: number, bytes with callees, text. */
function shownLines(page) {
  return page.locator(".source-box .row.has-memory").evaluateAll((rows) =>
    rows.map((row) => {
      const text = (name) => row.querySelector(name)?.textContent ?? "";
      return [Number(text(".source-number")), text(".source-share"), text(".source-text")];
    }),
  );
}

/** The same of a report, with bytes as numbers. */
function reportedLines({ lines }) {
  return lines
    .filter((line) => line.memory)
    .map((line) => [line.line, line.memory.inclusive.allocated.bytes.value, line.text]);
}

async function copiedCommand(page) {
  await page.getByRole("button", { name: "Copy as command" }).click();
  return page.evaluate(() => navigator.clipboard.readText());
}

function assertSame(shown, reported) {
  assert.ok(reported.length > 0);
  assert.deepEqual(
    shown.map(([line, , text]) => [line, text]),
    reported.map(([line, , text]) => [line, text]),
  );
  const units = { B: 1, KiB: 1024, MiB: 1024 ** 2 };
  for (const [place, [, text]] of shown.entries()) {
    const [number, unit] = text.split(" ");
    const expected = reported[place][1];
    assert.ok(Math.abs(Number(number) * units[unit] - expected) <= 0.006 * expected, `${text} is not ${expected}`);
  }
}

export const sourceTests = [
  [
    "the lines of a file have the numbers of the command, for the selection",
    async ({ page, ...tools }) => {
      const url = await withSources(tools);
      for (const hash of ["", "live=all", "live=end&ownCode", "live=all&where=size > 1k&hide=Mix.words"]) {
        await open(page, url, `view=source&source=mix.ml&${hash}`);
        const command = await copiedCommand(page);
        assert.match(command, /^heapline source \S+ mix\.ml .*--all.* --source \S+fixtures$/);
        assertSame(await shownLines(page), reportedLines(JSON.parse(shell(`${command} --json`))));
      }
      await open(page, url, "view=source&source=mix.ml&live=all");
      const before = await shownLines(page);
      await brush(page, 0.2, 0.5);
      assert.notDeepEqual(await shownLines(page), before);
      const report = JSON.parse(shell(`${await copiedCommand(page)} --json`));
      assertSame(await shownLines(page), reportedLines(report));
    },
  ],
  [
    "every frame leads to its line in the source",
    async ({ page, ...tools }) => {
      const url = await withSources(tools);
      const selected = page.locator(".source-box .row.is-selected");

      await open(page, url, "view=flame&live=all");
      const row = 1;
      const name = await nameAt(page, row, 0.05);
      await page.mouse.click(...(await flamePoint(page, row, 0.05)), { button: "right" });
      await page.getByRole("menuitem", { name: /Go to its source/ }).click();
      await settled(page);
      assert.equal(await chosen(page, "source"), name);
      await page.keyboard.press("u");
      await page.waitForFunction(() => !location.hash.includes("view=source"));

      await open(page, url, "view=table&live=all&by=site");
      await page.locator(".rows-body .row", { hasText: "mix.ml:11:58-80" }).click();
      await page.keyboard.press("g");
      await settled(page);
      assert.equal(await chosen(page, "source"), "mix.ml:11:58-80");
      assert.equal(await selected.locator(".source-number").textContent(), "11");
      assert.match(await selected.locator(".source-text").textContent(), /^let big n/);
      assert.equal(await page.locator(".source-box .row.is-focus").count(), 1);

      await open(page, url, "view=tree&live=all");
      await page.locator(".rows-body .row", { hasText: "Mix.big" }).first().click({ button: "right" });
      await page.getByRole("menuitem", { name: /Go to its source/ }).click();
      await settled(page);
      assert.equal(await selected.locator(".source-number").textContent(), "11");

      const leaky = await tools.serve("demo", "--source", SOURCES);
      await open(page, leaky, "view=leaks");
      await page.locator(".leak:not(.leak-head)", { hasText: "shop.ml:42" }).first().click();
      await page.keyboard.press("g");
      await settled(page);
      assert.equal(await selected.locator(".source-number").textContent(), "42");
    },
  ],
  [
    "keys lead through the lines with memory, and back to the files",
    async ({ page, ...tools }) => {
      const url = await withSources(tools);
      await open(page, url, "view=source");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("Enter");
      await settled(page);
      assert.equal(await chosen(page, "source"), "mix.ml");
      const lines = (await shownLines(page)).map(([line]) => line);
      const selected = async () =>
        Number(await page.locator(".source-box .row.is-selected .source-number").textContent());
      const start = lines.indexOf(await selected());
      assert.ok(start >= 0);
      for (let step = 1; start + step < lines.length; step++) {
        await page.keyboard.press("ArrowDown");
        assert.equal(await selected(), lines[start + step]);
      }
      await page.keyboard.press("j");
      assert.equal(await selected(), lines.at(-1));
      await page.keyboard.press("ArrowUp");
      assert.equal(await selected(), lines.at(-2));
      await page.keyboard.press("Escape");
      await settled(page);
      assert.equal(await chosen(page, "source"), null);
    },
  ],
  [
    "without --source, no text is shown, and the page says what helps",
    async ({ page, url, expectErrors }) => {
      await open(page, url, "view=source&source=mix.ml&live=all");
      assert.match(await page.locator(".source-notes").textContent(), /give --source DIR/);
      const lines = await shownLines(page);
      assert.ok(lines.length > 3 && lines.every(([, , text]) => text === ""));
      await open(page, url, "view=source&source=nosuch.ml");
      await page.getByText('the trace has no file "nosuch.ml"').waitFor();
      expectErrors(/400/);
    },
  ],
  [
    "lines are stale until those of the new selection are there",
    async ({ page, ...tools }) => {
      const url = await withSources(tools);
      await open(page, url, "view=source&source=mix.ml&live=all");
      let release = () => {};
      const held = new Promise((resolve) => {
        release = resolve;
      });
      await page.route(/\/source\?/, async (route) => {
        await held;
        await route.continue();
      });
      await page.keyboard.press("e");
      await page.locator(".source-box.stale").waitFor();
      release();
      await settled(page);
      assert.equal(await page.locator(".source-box.stale").count(), 0);
    },
  ],
  [
    "a line opens in the editor, if the user said how",
    async ({ page, ...tools }) => {
      const without = await withSources(tools);
      await open(page, without, "view=source&source=mix.ml:11");
      assert.equal(await page.getByRole("link", { name: /editor/ }).count(), 0);
      const options = ["--source", SOURCES, "--editor", "vscode://file/{file}:{line}"];
      const url = await tools.serve(tools.trace(MIX), ...options);
      await open(page, url, "view=source&source=mix.ml:11");
      const link = page.getByRole("link", { name: "Open line 11 in editor" });
      assert.equal(await link.getAttribute("href"), `vscode://file${SOURCES}/mix.ml:11`);
      // Without a text, there is nothing to open.
      await open(page, url, "view=source&source=map.ml");
      assert.equal(await page.getByRole("link", { name: /editor/ }).count(), 0);
    },
  ],
  [
    "a report file does not offer sources",
    async ({ page, heapline, trace, scratch }) => {
      const file = `${scratch}/source.html`;
      heapline("report", trace(MIX), "-o", file);
      await open(page, `file://${file}`, "live=all&view=table");
      assert.equal(await page.getByRole("tab", { name: "Source" }).count(), 0);
      await page.locator(".rows-body .row").first().click({ button: "right" });
      await page.getByRole("menuitem", { name: /Copy its name/ }).waitFor();
      assert.equal(await page.getByRole("menuitem", { name: /source/ }).count(), 0);
    },
  ],
];
