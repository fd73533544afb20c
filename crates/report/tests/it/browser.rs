//! The page in a real browser, on a wide screen and on a phone, light and dark: the script runs
//! without an error, nothing is loaded from the network, and read-outs, zoom, switches and
//! themes work.
//!
//! Runs where a Chromium is on the path, and says loudly where it does not.

use crate::sample;
use prism_report::{Axis, Block, Chart, Curve, CurveShape, Curves, Document, Section, Unit, html};
use prism_testkit::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

/// Drives the page as a reader would and reports the first thing that is wrong.
const CHECK: &str = include_str!("browser_check.js");

/// A page that shows the report at two widths and collects what the checks say.
const HOST: &str = r#"<!doctype html><title>host</title>
<iframe src="report.html" style="width:1280px;height:900px"></iframe>
<iframe src="report.html" style="width:360px;height:800px"></iframe>
<script>addEventListener("message", (event) => {
  document.body.appendChild(document.createElement("p")).textContent = event.data;
});</script>"#;

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path)
        .flat_map(|folder| NAMES.map(|name| folder.join(name)))
        .find(|program| program.is_file());
    if found.is_none() {
        skipped("the report's page is not tried in a browser", "chromium");
    }
    found
}

/// A folder of this test that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = format!("prism-report-{name}-{}-{count}", std::process::id());
        let path = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&path).expect("the temporary folder is writable");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("the temporary folder is writable");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A browser may still hold a file; what is left is in the temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The theme that the reader's system asks for.
#[derive(Clone, Copy)]
enum Theme {
    Light,
    Dark,
}

fn dump(browser: &Path, folder: &Folder, page: &Path, theme: Theme) -> Output {
    let scheme = match theme {
        Theme::Light => "--blink-settings=preferredColorScheme=1",
        Theme::Dark => "--blink-settings=preferredColorScheme=0",
    };
    Command::new(browser)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic"])
        .args(["--no-first-run", "--disable-background-networking", "--disable-sync"])
        .args(["--disable-component-update", "--enable-logging=stderr", scheme])
        .args(["--virtual-time-budget=10000", "--window-size=1400,1000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.0.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts")
}

/// What the browser says about errors on the page.
fn console(output: &Output) -> Vec<String> {
    let log = String::from_utf8_lossy(&output.stderr);
    log.lines().filter(|line| line.contains("CONSOLE")).map(String::from).collect()
}

/// What the checks say on a page with this document, once for each width.
fn said(browser: &Path, document: &Document, theme: Theme) -> Vec<String> {
    let folder = Folder::new("page");
    let page = html::render(document);
    let checked = page.replace("</body>", &format!("<script>{CHECK}</script></body>"));
    assert_ne!(checked, page);
    folder.write("report.html", &checked);
    let host = folder.write("host.html", HOST);
    let output = dump(browser, &folder, &host, theme);
    assert_eq!(console(&output), Vec::<String>::new());
    let dom = String::from_utf8_lossy(&output.stdout);
    let answers = dom.split("<p>").skip(1).filter_map(|p| p.split("</p>").next());
    answers.map(String::from).collect()
}

/// Curves whose x are powers in each unit: their read-outs are written by the
/// script, those of the table by this crate.
fn units() -> Document {
    let mut section = Section::new("units", "");
    let units = [
        Unit::Nanos,
        Unit::Bytes,
        Unit::BytesPerSec,
        Unit::Count,
        Unit::PerSec,
        Unit::Ratio,
        Unit::Percent,
    ];
    for unit in units {
        let whole = matches!(unit, Unit::Nanos | Unit::Bytes);
        let powers = if whole { 0..34 } else { -9..7 };
        let value = |power: i32| {
            let value = f64::powi(2.9, power);
            if whole { value.round() } else { value }
        };
        section.push(Block::Chart(Chart::Curves(Curves {
            title: format!("{unit:?}"),
            caption: String::new(),
            x: Axis::linear("x", unit),
            y: Axis::linear("y", unit),
            series: vec![Curve::new(
                "c",
                CurveShape::Line,
                powers.map(|power| (value(power), value(power) * 0.31)).collect(),
            )],
            marks: Vec::new(),
        })));
    }
    Document::new("units", "").with(section)
}

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else { return };
    for (theme, answer) in [(Theme::Light, "all well in light"), (Theme::Dark, "all well in dark")]
    {
        assert_eq!(said(&browser, &sample::document(), theme), [answer; 2]);
    }
}

#[test]
fn the_script_writes_numbers_as_the_page_does() {
    let Some(browser) = browser() else { return };
    assert_eq!(said(&browser, &units(), Theme::Light), ["all well in light"; 2]);
}

#[test]
fn errors_on_a_page_and_requests_to_the_network_would_be_seen() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("control");
    let page = html::render(&sample::document());
    let planted = page.replace("</main>", "<img src=\"data.png\"><script>none()</script></main>");
    let path = folder.write("planted.html", &planted);
    let seen = console(&dump(&browser, &folder, &path, Theme::Light)).join("\n");
    assert!(seen.contains("none is not defined"), "an error is seen: {seen}");
    assert!(seen.contains("Content Security Policy"), "the policy is in force: {seen}");
}
