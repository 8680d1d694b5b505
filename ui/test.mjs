// Runs the unit tests: bundles each test/*.test.ts for Node and hands them to its test runner.

import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { options } from "./build.mjs";

const out = await mkdtemp(join(tmpdir(), "heapline-ui-"));
try {
  const tests = (await readdir(new URL("test", import.meta.url))).filter((name) => name.endsWith(".test.ts"));
  await build({
    ...options,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: out,
    outExtension: { ".js": ".mjs" },
    platform: "node",
    sourcemap: "inline",
  });
  const files = tests.map((name) => join(out, name.replace(/\.ts$/, ".mjs")));
  const { status } = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  await rm(out, { recursive: true });
}
