// Builds the page into dist, or another folder that is given: index.html, assets/app.js, assets/app.css. One script
// and one style sheet with fixed names, because the server embeds them and `heapline report` puts both into one HTML file.

import { cp, mkdir, readFile, rm } from "node:fs/promises";
import { build } from "esbuild";

const here = new URL(".", import.meta.url);

/** What all bundles have in common; test.mjs uses it too. */
export const options = {
  absWorkingDir: here.pathname,
  bundle: true,
  jsx: "automatic",
  jsxImportSource: "preact",
  target: "es2022",
  format: "esm",
  logLevel: "warning",
};

async function buildPage(name) {
  const dist = new URL(`${name}/`, here);
  await rm(dist, { recursive: true, force: true });
  await mkdir(dist);
  await build({ ...options, entryPoints: { app: "src/main.tsx" }, outdir: `${name}/assets`, minify: true });
  await cp(new URL("index.html", here), new URL("index.html", dist));
  const { length } = await readFile(new URL("assets/app.js", dist));
  console.log(`${name}/assets/app.js: ${Math.round(length / 1024)} KiB`);
}

if (process.argv[1] === new URL(import.meta.url).pathname) await buildPage(process.argv[2] ?? "dist");
