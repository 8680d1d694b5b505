import assert from "node:assert/strict";
import { test } from "node:test";
import { svgFile } from "../src/save/compose";
import { stem } from "../src/save/download";
import { exportAddress, reportAddress, reportState } from "../src/save/requests";
import { type Tools, SvgPen, xml } from "../src/save/svg";
import { parseState } from "../src/state/state";

const TOOLS: Tools = {
  measure: (text) => ({ width: 6 * text.length }) as TextMetrics,
  colour: (css) => (css === "oklch(0.5 0.1 20)" ? "#123456" : css),
};
const TRACE = { duration: 10, hasOther: false };
const decoded = (text: string) => decodeURIComponent(text.replaceAll("+", " "));

test("a picture is a file with its title, selection, legend and origin", () => {
  const file = svgFile(
    {
      title: "Live: 1 ± 0.5 MiB",
      height: 100,
      selection: 'inside "a<b"',
      legend: [
        { fill: "oklch(0.5 0.1 20)", text: "A.f" },
        { fill: "#fff", text: "other" },
      ],
      draw: (pen, width) => {
        pen.fillStyle = "oklch(0.5 0.1 20)";
        pen.fillRect(0, 0, width, 10);
        pen.beginPath();
        pen.moveTo(0, 0);
        pen.lineTo(1.234, 5);
        pen.stroke();
      },
    },
    { program: "shop", origin: "Heapline, trace.ctf" },
    TOOLS,
  );
  assert.match(file, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="1200" /);
  assert.match(file, /<title>shop: Live: 1 ± 0.5 MiB<\/title>/);
  for (const text of ["inside &quot;a&lt;b&quot;", "A.f", "other", "Heapline, trace.ctf"])
    assert.ok(file.includes(`>${text}</text>`), text);
  // The picture is shifted by the margin and the lines above it; colours are those that all programs know.
  assert.match(file, /<rect x="16" y="74" width="1168" height="10" fill="#123456"\/>/);
  assert.match(file, /d="M16 74L17.23 79"/);
  assert.doesNotMatch(file, /oklch|NaN|undefined/);
});

test("text in a file is XML, whatever is in names", () => {
  assert.equal(xml('<a&"\u0000\u202e\ud800>'), "&lt;a&amp;&quot;\u202e&gt;");
  assert.equal(xml("é😀"), "é😀");
});

test("clips and styles end with what they were saved for", () => {
  const pen = new SvgPen(TOOLS);
  pen.fillStyle = "red";
  pen.save();
  pen.rect(0, 0, 5, 5);
  pen.clip();
  pen.fillStyle = "blue";
  pen.fillRect(1, 1, 2, 2);
  pen.restore();
  pen.fillRect(3, 3, 2, 2);
  const file = pen.file(10, 10, "");
  assert.match(file, /<g clip-path="url\(#clip1\)"><rect [^>]*fill="blue"\/><\/g>\n<rect [^>]*fill="red"\/>\n<\/svg>/);
});

test("files have plain names", () => {
  assert.equal(stem("/tmp/a b/trace.ctf"), "trace");
  assert.equal(stem('../.."x;\n.ctf'), "_x_");
  assert.equal(stem(""), "heapline");
});

test("an export is about what the page shows", () => {
  const address = (hash: string, format: "pprof" | "collapsed") =>
    decoded(exportAddress(parseState(hash), TRACE, format));
  assert.equal(address("", "pprof"), "export?format=pprof");
  assert.equal(address("#view=flame", "pprof"), "export?format=pprof&where=live at peak&at=peak");
  assert.equal(address("#live=all&hide=B.*&ownCode", "collapsed"), "export?format=collapsed&hide=B.*&own-code=true");
  assert.equal(address("#view=leaks", "collapsed"), "export?format=collapsed&where=live at end");
  assert.equal(
    address("#view=flame&live=1.5&window=0..2&where=size+>+1k&lines&recursion&estimator=count", "collapsed"),
    "export?format=collapsed&where=size > 1k&where=allocated in 0s..2s&where=live at 1.5s&estimator=count&keep-recursion=true&sites=true",
  );
  // Windows that are compared do not restrict what there is.
  assert.equal(
    address("#view=compare&window=0..2&before=0..1&of=end", "collapsed"),
    "export?format=collapsed&where=live at end",
  );
});

test("a report file opens in the state of the page, as far as it has that", () => {
  assert.equal(reportAddress(parseState("")), "report");
  assert.equal(decoded(reportAddress(parseState("#view=table&sort=peak"))), "report?state=view=table&sort=peak");
  assert.deepEqual(reportState(parseState("#view=table&where=promoted&live=1.5")), {
    hash: "view=table",
    isLess: true,
  });
  assert.deepEqual(reportState(parseState("#window=0..1&live=all")), { hash: "live=all", isLess: true });
});
