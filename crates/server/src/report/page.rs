//! The page with room for the data of a report.

use std::io::{self, Write};

use super::ReportError;
use crate::assets;

/// The places of the page that the report fills.
const STYLE: &str = "<link rel=\"stylesheet\" href=\"./assets/app.css\" />";
const SCRIPT: &str = "<script type=\"module\" src=\"./assets/app.js\"></script>";

/// A report needs no network, and cannot use it.
const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:\" />";

/// The page, taken apart where something is to be put in.
pub(super) struct Page {
    before_style: &'static str,
    before_script: &'static str,
    after_script: &'static str,
    style: &'static str,
    script: String,
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
        let style = text("assets/app.css")?;
        if style.contains("</style") {
            return Err(ReportError::BadPage("a style sheet without </style"));
        }
        Ok(Self {
            before_style,
            before_script,
            after_script,
            style,
            // Scripts have it in texts only, where the backslash does not change it.
            script: text("assets/app.js")?.replace("</script", "<\\/script"),
        })
    }

    pub(super) fn write(&self, data: &str, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "{}{POLICY}\n    <style>{}</style>{}\
             <script id=\"heapline-report\" type=\"application/json\">{}</script>\n    \
             <script type=\"module\">{}</script>{}",
            self.before_style,
            self.style,
            self.before_script,
            // So that no text in it ends the script. `<` is in texts only.
            data.replace('<', "\\u003c"),
            self.script,
            self.after_script
        )?;
        out.flush()
    }
}
