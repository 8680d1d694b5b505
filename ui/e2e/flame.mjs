// The flame graph.

import assert from "node:assert/strict";
import { chosen, eventually, flamePoint, nameAt, open, settled } from "./page.mjs";

const MIX = "mix-ocaml53/trace.ctf";

export const flameTests = [
  [
    "a box says what heapline tree says of it",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=end");
      const name = await nameAt(page, 2, 0.1);
      const tree = heapline("tree", trace(MIX), "--live", "end", "--min", "0.1%", "--json");
      const node = tree.nodes.find((node) => node.depth === 1 && node.label.name === name);
      const tip = await page.locator(".frame-tip").innerText();
      const share = ((100 * node.total.bytes.value) / tree.total.bytes.value).toFixed(1);
      assert.ok(tip.includes(` ${share} %`), `${share} in ${tip}`);
      assert.match(tip, new RegExp(`Samples\\s+${node.total.samples.toLocaleString("en-US")}$`, "m"));
    },
  ],
  [
    "a click zooms, Escape and the back button come back",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      assert.equal(await nameAt(page, 1, 0.5), "Mix");
      const name = await nameAt(page, 2, 0.1);
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)));
      assert.notEqual(await chosen(page, "node"), null);
      await eventually(async () => assert.equal(await nameAt(page, 2, 0.95), name));
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "node"), null);
      await page.goBack();
      assert.notEqual(await chosen(page, "node"), null);
    },
  ],
  [
    "a search says how much it found",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.keyboard.press("/");
      await page.keyboard.type("Map.Make");
      const found = await page.locator(".found").textContent();
      // Everything inside of Stdlib.Map.Make.
      const share = Number(/^([\d.]+) %/.exec(found)?.[1]);
      assert.ok(share > 30 && share < 36, found);
      await page.getByRole("searchbox").fill("no such thing");
      await eventually(async () => assert.equal(await page.locator(".found").textContent(), "not in this trace"));
      // All that was typed is undone together.
      await page.goBack();
      assert.equal(await chosen(page, "search"), null);
      assert.equal(await chosen(page, "live"), "all");
    },
  ],
  [
    "a search finds functions that are not drawn, and filters by them",
    async ({ page, url }) => {
      const found = async (text) =>
        eventually(async () => assert.match(await page.locator(".found").textContent(), text));
      // The filter leaves nothing of these functions.
      await open(page, url, 'live=all&where=inside+"Mix.words"&search=Mix.big');
      await found(/^12.2 MiB inside Mix\.big, not in this selection/);
      await page.getByRole("button", { name: "Whole run" }).click();
      assert.equal(await chosen(page, "where"), 'inside "Mix.big"');
      await found(/^100.0 % in 1 box/);
      // Callers are no rows of a table of those that allocate.
      await open(page, url, 'view=table&live=all&where=inside+"Mix.words"&rows=Mix.big');
      await eventually(async () => assert.match(await page.locator(".empty").textContent(), /Mix\.big, not in this/));
      await open(page, url, 'view=tree&live=all&where=inside+"Mix.words"&search=Mix.big');
      await found(/^12.2 MiB inside Mix\.big, not in this selection/);
    },
  ],
  [
    "the menu of a function focuses on it, hides it, and is undone",
    async ({ page, url, heapline, trace }) => {
      await open(page, url, "live=all");
      await page.mouse.click(...(await flamePoint(page, 2, 0.1)), { button: "right" });
      const name = await page.locator(".menu-title").textContent();
      await page.getByRole("menuitem", { name: /^Focus: / }).click();
      await settled(page);
      assert.equal(await chosen(page, "focus"), name);
      const tree = heapline("tree", trace(MIX), "--focus", name, "--json");
      const share = ((100 * tree.focus_total.bytes.value) / tree.total.bytes.value).toFixed(1);
      assert.match(await page.locator(".transforms").textContent(), new RegExp(`${share} % of all`));
      await page.keyboard.press("u");
      await settled(page);
      assert.equal(await chosen(page, "focus"), null);
      await page.mouse.move(...(await flamePoint(page, 2, 0.1)));
      await page.keyboard.press("h");
      await settled(page);
      assert.equal(await chosen(page, "hide"), name);
      assert.notEqual(await nameAt(page, 2, 0.1), name);
    },
  ],
  [
    "frames that all stacks share are one box, which a click unfolds",
    async ({ page, serve, trace }) => {
      await open(page, await serve(trace("odd/deep1000.ctf")), "live=all");
      const height = () => page.locator(".flame-scroller").evaluate((element) => element.scrollHeight);
      const folded = await height();
      assert.match(await nameAt(page, 1, 0.5), /^\d+ frames that nearly all/);
      await page.mouse.click(...(await flamePoint(page, 1, 0.5)));
      assert.equal(await chosen(page, "unfolded"), "");
      await page.waitForFunction((folded) => document.querySelector(".flame-scroller").scrollHeight > folded, folded);
      // Stacks of a thousand frames are shown.
      assert.ok((await height()) > 5000);
      await page.keyboard.press("m");
      assert.equal(await chosen(page, "unfolded"), null);
      await page.keyboard.press("/");
      await page.keyboard.type("no such function");
      await page.waitForFunction((folded) => document.querySelector(".flame-scroller").scrollHeight > folded, folded);
    },
  ],
  [
    "a double click zooms in once",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.mouse.dblclick(...(await flamePoint(page, 2, 0.1)));
      assert.notEqual(await chosen(page, "node"), null);
    },
  ],
  [
    "keys are about the selected box after the keyboard has moved, wherever the mouse rests",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      const pointed = await nameAt(page, 2, 0.1);
      await page.locator(".flame-sticky canvas").focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowRight");
      const selected = (await page.locator(".flame-scroller .spoken").textContent()).split(":")[0];
      assert.ok(!selected.startsWith(pointed), selected);
      await page.keyboard.press("c");
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.ok(selected.startsWith(copied), `${copied} for ${selected}`);
    },
  ],
  [
    "after a change of the picture, a key does not act on a box that is no longer there",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await nameAt(page, 2, 0.1);
      await page.keyboard.press("h");
      await settled(page);
      await page.keyboard.press("h");
      await settled(page);
      assert.equal(typeof (await chosen(page, "hide")), "string", "one function is hidden");
    },
  ],
  [
    "tooltips go when the page changes or is scrolled",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      const tip = page.locator(".tip");
      const show = async () => {
        await page.mouse.move(0, 0);
        await nameAt(page, 2, 0.1);
        assert.equal(await tip.count(), 1);
      };
      for (const key of ["i", "i", "2"]) {
        await show();
        await page.keyboard.press(key);
        await settled(page);
        assert.equal(await tip.count(), 0, key);
        if (key === "2") await page.keyboard.press("1");
        await settled(page);
      }
      await show();
      await page.goBack();
      await settled(page);
      assert.equal(await tip.count(), 0, "back");
    },
  ],
  [
    "the tools of the flame graph take one line, however it is coloured",
    async ({ page, url }) => {
      const heights = new Set();
      for (const colour of ["module", "heap", "lifetime", "growth"]) {
        await open(page, url, `live=all&colour=${colour}&search=map`);
        heights.add((await page.locator(".flame-view .toolbar").boundingBox()).height);
      }
      assert.equal(heights.size, 1, [...heights].join());
    },
  ],
  [
    "Enter in the search goes to the largest match, then to the next",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.keyboard.press("/");
      await page.keyboard.type("stdlib");
      const spoken = page.locator(".flame-scroller .spoken");
      const amounts = [];
      for (let n = 0; n < 3; n++) {
        await page.keyboard.press("Enter");
        await page.waitForFunction(
          (before) => !before.includes(document.querySelector(".flame-scroller .spoken").textContent),
          ["", ...amounts],
        );
        amounts.push(await spoken.textContent());
      }
      assert.ok(
        amounts.every((text) => text.startsWith("Stdlib.")),
        amounts.join(),
      );
      const shares = amounts.map((text) => Number(/([\d.]+) %/.exec(text)[1]));
      assert.deepEqual(
        shares,
        shares.toSorted((a, b) => b - a),
      );
    },
  ],
  [
    "a match stays selected when the search ends, and the arrow keys show figures",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      await page.keyboard.press("/");
      await page.keyboard.type("Map.Make.bal");
      await page.keyboard.press("Enter");
      const tip = page.locator(".tip", { hasText: "Stdlib.Map.Make.bal" });
      await tip.filter({ hasText: "Total" }).waitFor();
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "search"), null);
      await settled(page);
      const spoken = page.locator(".flame-scroller .spoken", { hasText: /^Stdlib\.Map\.Make\.bal/ });
      await spoken.waitFor({ state: "attached" });
      // The keys go on from there.
      await page.keyboard.press("ArrowUp");
      await page.locator(".tip", { hasText: "Total" }).waitFor();
      await page.keyboard.press("Escape");
      await page.locator(".tip").waitFor({ state: "detached" });
    },
  ],
  [
    "the wheel zooms with Ctrl, dragging pans, Escape shows everything",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      const name = await nameAt(page, 2, 0.05);
      await page.mouse.move(...(await flamePoint(page, 2, 0.05)));
      await page.keyboard.down("Control");
      await page.mouse.wheel(0, -600);
      await page.keyboard.up("Control");
      await page.waitForFunction(() => location.hash.includes("range="));
      const range = async () => (await chosen(page, "range")).split("..").map(Number);
      const [from, to] = await range();
      assert.ok(from > 0 && from < 0.05 && 0.05 < to && to < 0.25, `${from}..${to}`);
      assert.equal(await nameAt(page, 2, 0.05), name, "what is pointed at stays");
      await page.mouse.move(...(await flamePoint(page, 2, 0.6)));
      await page.mouse.down();
      await page.mouse.move(...(await flamePoint(page, 2, 0.2)), { steps: 4 });
      await page.mouse.up();
      await page.waitForFunction((from) => !location.hash.includes(`range=${from}`), from);
      assert.ok((await range())[0] > from);
      assert.equal(await chosen(page, "node"), null, "a drag is no click");
      await page.keyboard.press("Escape");
      assert.equal(await chosen(page, "range"), null);
    },
  ],
  [
    "ancestors that are scrolled out of sight stay reachable",
    async ({ page, serve, heapline, trace }) => {
      const file = trace("generated/domains.ctf");
      const url = await serve(file);
      await page.setViewportSize({ width: 1280, height: 640 });
      await open(page, url, "live=all&unfolded");
      assert.equal(await page.locator(".trail").count(), 0, "everything is in sight");
      await page.mouse.move(...(await flamePoint(page, 8, 0.01)));
      await page.mouse.wheel(0, 120);
      await page.locator(".trail").waitFor();
      const name = await nameAt(page, 4, 0.01);
      const crumbs = await page.locator(".trail button").allTextContents();
      assert.match(crumbs[0], /^Allocated: /);
      const { nodes } = heapline("tree", file, "--min", "0.1%", "--json");
      const pathOf = (node) => (node ? [...pathOf(nodes[node.parent]), node.label.name] : []);
      const paths = nodes.filter((node) => node.label.name === name).map((node) => pathOf(node).join(">"));
      const hidden = crumbs.slice(1);
      assert.ok(
        hidden.length >= 5 && paths.some((path) => path.startsWith(`${hidden.join(">")}>`)),
        `${crumbs} ${name}`,
      );
      await page.locator(".trail button").nth(2).click();
      await settled(page);
      assert.notEqual(await chosen(page, "node"), null);
      await page.locator(".spoken", { hasText: hidden[1] }).first().waitFor({ state: "attached" });
      // It is below the row of its own ancestors now.
      await page.waitForFunction(() => document.querySelectorAll(".trail button").length === 2);
    },
  ],
  [
    "the overview can be closed and opened",
    async ({ page, url }) => {
      await open(page, url, "live=all&range=0.5..0.7");
      await page.locator(".minimap-close").click();
      await page.locator(".minimap").waitFor({ state: "detached" });
      assert.equal(await chosen(page, "range"), "0.5..0.7");
      await page.getByRole("button", { name: "Overview", exact: true }).click();
      await page.locator(".minimap").waitFor();
    },
  ],
  [
    "an overview shows which part is visible, and moves it, unless everything is visible",
    async ({ page, url }) => {
      await open(page, url, "live=all");
      assert.equal(await page.locator(".minimap").count(), 0);
      await open(page, url, "live=all&range=0.5..0.7");
      await page.locator(".minimap").waitFor();
      const map = await page.locator(".minimap").boundingBox();
      const view = await page.locator(".minimap-view").boundingBox();
      const share = (x) => (x - map.x) / map.width;
      assert.ok(Math.abs(share(view.x) - 0.5) < 0.02 && Math.abs(view.width / map.width - 0.2) < 0.02);
      await page.mouse.move(view.x + view.width / 2, map.y + 10);
      await page.mouse.down();
      await page.mouse.move(map.x + map.width * 0.3, map.y + 10, { steps: 4 });
      await page.mouse.up();
      // Ranges on the way are in the URL too, perhaps after the button was released.
      await page.waitForFunction(() => {
        const range = /range=(.*?)\.\.([\d.]+)/.exec(location.hash);
        return range && Math.abs(range[1] - 0.2) < 0.01 && Math.abs(range[2] - 0.4) < 0.01;
      });
      await page.keyboard.press("Escape");
      await settled(page);
      assert.equal(await page.locator(".minimap").count(), 0);
    },
  ],
];
