// Helpers for tests of the page.

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";

/** Opens a state of the page and waits until it shows numbers. The view is the flame graph if the state has none. */
export async function open(page, url, hash = "") {
  const view = new URLSearchParams(hash).has("view") ? "" : "view=flame&";
  await page.goto(`${url}#${view}${hash}`);
  await settled(page);
}

/** Waits until nothing is awaited any more; asks at every frame, or every few milliseconds. */
export async function settled(page, polling = "raf") {
  await page.waitForSelector(".tile-value");
  const isSettled = () => {
    const values = [...document.querySelectorAll(".tile-value")];
    const isWaiting = document.querySelector(".stale, [aria-busy=true]") !== null;
    return values.every((value) => value.textContent !== "…") && !isWaiting;
  };
  do {
    await page.waitForFunction(isSettled, null, { polling });
    await nextFrames(page);
    // A view that was just drawn may ask for more.
  } while (!(await page.evaluate(isSettled)));
}

/** Waits until the page has been drawn. */
function nextFrames(page) {
  return page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Repeats a check until it passes, for up to ten seconds: for boxes that move, and numbers that change. */
export async function eventually(check) {
  const end = Date.now() + 30_000;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await setTimeout(20);
    }
  }
}

/** Opens a state of the page of a heap snapshot and waits until it shows numbers. */
export async function openHeap(page, url, hash = "") {
  await page.goto(`${url}#${hash}`);
  await page.reload();
  await settledHeap(page);
}

export async function settledHeap(page) {
  await page.waitForSelector(".heap-facts");
  await page.waitForFunction(() => {
    const shown = "canvas, .rows-body .row, .why-row, .heap-diff, .findings, .empty";
    const isWaiting = document.querySelector(".stale, [aria-busy=true]") !== null;
    return document.querySelector(`#view :is(${shown})`) !== null && !isWaiting;
  });
  await nextFrames(page);
}

/** The three numbers on top. */
export async function headline(page) {
  const values = await page.locator(".tile-value").allTextContents();
  return { allocated: values[0], peak: values[1], end: values[2] };
}

/** The totals as `heapline summary` prints them. */
export function printed(summary) {
  const line = (name) => new RegExp(`^  ${name} +(\\S.*?)  `, "m").exec(summary)?.[1];
  return { allocated: line("Allocated"), peak: line("Live at peak"), end: line("Live at end") };
}

export async function assertHeadline(page, summary) {
  assert.deepEqual(await headline(page), printed(summary));
}

/** The value of one choice in the address. */
export async function chosen(page, name) {
  const values = await page.evaluate((name) => new URLSearchParams(location.hash.slice(1)).getAll(name), name);
  return values.length > 1 ? values : (values[0] ?? null);
}

/** A point of the timeline, in shares of its width and height. */
export async function timelinePoint(page, x, y = 0.5) {
  const box = await page.locator(".plot canvas").boundingBox();
  return [box.x + box.width * x, box.y + box.height * y];
}

export async function brush(page, from, to) {
  await page.mouse.move(...(await timelinePoint(page, from)));
  await page.mouse.down();
  await page.mouse.move(...(await timelinePoint(page, (from + to) / 2)));
  await page.mouse.move(...(await timelinePoint(page, to)));
  await page.mouse.up();
  await settled(page);
}

const ROW = 20;

/** A point of the flame graph: row 0 is everything, x is a share of the width. */
export async function flamePoint(page, row, x) {
  const box = await page.locator(".flame-sticky canvas").boundingBox();
  return [box.x + box.width * x, box.y + row * ROW + ROW / 2];
}

/** The name in the tooltip of a box. */
export async function nameAt(page, row, x) {
  await page.mouse.move(...(await flamePoint(page, row, x)));
  return page.locator(".frame-tip-name").textContent();
}

/** Texts of a column of the table on the screen. */
export function cells(page, place) {
  return page.locator(`.rows-body .row > :nth-child(${place})`).allTextContents();
}
