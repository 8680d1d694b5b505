// Makes the pictures of the documentation.
//
//   HEAPLINE=target/release/heapline node ui/e2e/screenshots.mjs TRACE [FOLDER]
//
// They look best with the fonts Inter and JetBrains Mono, and are a third of the size with pngquant (Debian:
// fonts-inter, fonts-jetbrains-mono, pngquant).

import { spawnSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { flamePoint, open, settled, timelinePoint } from "./page.mjs";
import { serve, trace } from "./program.mjs";

const [file = trace("mix-ocaml53/trace.ctf"), folder = new URL("../../docs/images", import.meta.url).pathname] =
  process.argv.slice(2);

const PICTURES = [
  { name: "overview", hash: "view=overview", theme: "light" },
  {
    name: "viewer",
    hash: "live=all",
    theme: "light",
    act: async (page) => page.mouse.move(...(await flamePoint(page, 12, 0.2))),
  },
  {
    name: "viewer-dark",
    hash: "",
    theme: "dark",
    act: async (page) => page.mouse.move(...(await timelinePoint(page, 0.45, 0.55))),
  },
  { name: "focus", hash: "folded=&live=all&focus=Stdlib.List.map&colour=lifetime", theme: "light" },
  { name: "table", hash: "folded=&view=table&live=all", theme: "light" },
  { name: "tree", hash: "folded=&view=tree&live=all", theme: "light" },
  { name: "leaks", hash: "folded=&view=leaks", theme: "light" },
  { name: "compare", hash: "view=compare&diffShape=flame", theme: "light" },
  {
    name: "source",
    hash: "folded=&view=source&source=shop.ml",
    theme: "light",
    of: ["demo", "--source", trace("")],
  },
  { name: "lifetimes", hash: "folded=&view=lifetimes&live=all", theme: "light" },
];

await mkdir(folder, { recursive: true });
const servers = [await serve(file)];
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  for (const { name, hash, theme, act, of } of PICTURES) {
    const server = of ? await serve(...of) : servers[0];
    if (of) servers.push(server);
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: theme });
    page.setDefaultTimeout(60_000);
    await open(page, server.url, hash);
    await page.waitForTimeout(800);
    await settled(page);
    if (act) await act(page);
    await page.waitForTimeout(200);
    const picture = join(folder, `${name}.png`);
    await page.screenshot({ path: picture });
    spawnSync("pngquant", ["--force", "--skip-if-larger", "--quality=85-98", "--ext=.png", picture]);
    await page.close();
    console.log(`${name}.png`);
  }
} finally {
  await browser.close();
  for (const server of servers) server.stop();
}
