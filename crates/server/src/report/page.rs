//! The page with room for the data of a report.

use std::io::{self, Write};

use super::{ReportError, packed};
use crate::assets;

/// The places of the page that the report fills.
const STYLE: &str = "<link rel=\"stylesheet\" href=\"./assets/app.css\" />";
const SCRIPT: &str = "<script type=\"module\" src=\"./assets/app.js\"></script>";

/// A report needs no network, and cannot use it.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\" />";

/// The comment at the end of the script with the licences of the libraries in it, which must be readable.
const NOTICES: &str = "/*! This page contains:";

/// Unpacks the style sheet and the script of the page, and adds them to it.
const LOADER: &str = r#"
      for (const [id, name] of [["heapline-style", "style"], ["heapline-script", "script"]]) {
        const packed = Uint8Array.from(atob(document.getElementById(id).textContent), (c) => c.charCodeAt(0));
        const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
        const element = document.createElement(name);
        if (name === "script") element.type = "module";
        element.textContent = await new Response(stream).text();
        document.head.append(element);
      }
    "#;

/// The page, taken apart where something is to be put in.
pub(super) struct Page {
    before_style: &'static str,
    before_script: &'static str,
    after_script: &'static str,
    style: &'static str,
    script: &'static str,
    notices: &'static str,
}

impl Page {
    pub(super) fn new() -> Result<Self, ReportError> {
        if let Some(reason) = assets::missing_page() {
            return Err(ReportError::NoPage(reason));
        }
        let text = |path: &'static str| {
            assets::find(path)
                .and_then(|file| std::str::from_utf8(file.bytes).ok())
                .ok_or(ReportError::BadPage(path))
        };
        let index = text("index.html")?;
        let (before_style, rest) = index.split_once(STYLE).ok_or(ReportError::BadPage(STYLE))?;
        let (before_script, after_script) = rest
            .split_once(SCRIPT)
            .ok_or(ReportError::BadPage(SCRIPT))?;
        let app = text("assets/app.js")?;
        let end = app.rfind(NOTICES).ok_or(ReportError::BadPage(NOTICES))?;
        let (script, notices) = app.split_at(end);
        if notices.contains("</script") {
            return Err(ReportError::BadPage("notices without </script"));
        }
        Ok(Self {
            before_style,
            before_script,
            after_script,
            style: text("assets/app.css")?,
            script,
            notices,
        })
    }

    /// Writes the page with data that is JSON.
    pub(super) fn write(&self, data: &str, out: &mut dyn Write) -> io::Result<()> {
        let element = |id: &str, kind: &str, text: &str| {
            format!("<script id=\"{id}\" type=\"{kind}\">{text}</script>\n    ")
        };
        let elements = [
            element("heapline-notices", "text/plain", self.notices),
            // So that no text in it ends the script. `<` is in texts only.
            element(
                "heapline-report",
                "application/json",
                &data.replace('<', "\\u003c"),
            ),
            element(
                "heapline-style",
                "text/plain",
                &packed(self.style.as_bytes())?,
            ),
            element(
                "heapline-script",
                "text/plain",
                &packed(self.script.as_bytes())?,
            ),
        ];
        write!(
            out,
            "{}{POLICY}{}{}<script type=\"module\">{LOADER}</script>{}",
            self.before_style,
            self.before_script,
            elements.concat(),
            self.after_script
        )?;
        out.flush()
    }
}
