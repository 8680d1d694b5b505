// Builds the page into dist or a given directory: index.html, assets/app.js, assets/app.css. One script and one style
// sheet with fixed names, because the server embeds them and `heapline report` puts both into one HTML file.

import { appendFile, cp, mkdir, readFile, rm } from "node:fs/promises";
import { build } from "esbuild";

const here = new URL(".", import.meta.url);

/** Options of all bundles; also used by test.mjs. */
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
  const { metafile } = await build({
    ...options,
    entryPoints: { app: "src/main.tsx" },
    outdir: `${name}/assets`,
    minify: true,
    metafile: true,
  });
  await appendFile(new URL("assets/app.js", dist), await notices(Object.keys(metafile.inputs)));
  await cp(new URL("index.html", here), new URL("index.html", dist));
  const { length } = await readFile(new URL("assets/app.js", dist));
  console.log(`${name}/assets/app.js: ${Math.round(length / 1024)} KiB`);
}

/** The licences of the bundled packages, which must be distributed with the bundle. */
async function notices(files) {
  const folders = new Set(files.map((file) => file.match(/^node_modules\/(@[^/]+\/)?[^/]+\//)?.[0]).filter(Boolean));
  const texts = [...folders].sort().map(async (folder) => {
    const { name, version } = JSON.parse(await readFile(new URL(`${folder}package.json`, here), "utf8"));
    return `${name} ${version}\n\n${(await readFile(new URL(`${folder}LICENSE`, here), "utf8")).trim()}\n`;
  });
  return `/*! This page contains:\n\n${(await Promise.all(texts)).join("\n").replaceAll("*/", "* /")}*/\n`;
}

if (process.argv[1] === new URL(import.meta.url).pathname) await buildPage(process.argv[2] ?? "dist");
