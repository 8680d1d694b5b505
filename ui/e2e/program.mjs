// The program under test.

import { execFileSync, spawn } from "node:child_process";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));
export const program = resolve(process.env.HEAPLINE ?? `${root}target/debug/heapline`);

/** The path of a fixture. */
export function trace(name) {
  return `${root}fixtures/${name}`;
}

/** Runs a command and gives what it prints; with `--json` as the last option what that means. */
export function heapline(...args) {
  const text = execFileSync(program, args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, COLUMNS: "200", NO_COLOR: "1" },
  });
  return args.at(-1) === "--json" ? JSON.parse(text) : text;
}

/** Runs a line as a shell would, with the program under test for its first word. */
export function shell(line) {
  const env = { ...process.env, HEAPLINE_UNDER_TEST: program };
  return execFileSync("sh", ["-c", line.replace(/^heapline /, '"$HEAPLINE_UNDER_TEST" ')], {
    encoding: "utf8",
    env,
    cwd: root,
  });
}

/** Starts `heapline view` and waits until it says where. */
export function serve(file, ...options) {
  return new Promise((resolve, reject) => {
    const port = options.includes("--port") ? [] : ["--port", "0"];
    const child = spawn(program, ["view", file, "--no-browser", ...port, ...options], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const exit = new Promise((ended) => child.on("exit", ended));
    let said = "";
    const listen = (data) => {
      said += data;
      const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(said)?.[0];
      if (url) resolve({ url, stop: () => child.kill("SIGINT"), exit });
    };
    child.stdout.on("data", listen);
    child.stderr.on("data", listen);
    child.on("error", reject);
    child.on("exit", (code) => reject(new Error(`heapline view ended with ${code}: ${said}`)));
  });
}
