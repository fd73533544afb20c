//! The page in a real browser, on a wide screen and on a phone, light and dark: the script
//! runs without an error, nothing is asked of the network, and read-outs, zoom, switches
//! and themes do what they say.
//!
//! Runs where a Chromium is on the path, and says loudly where it does not.

mod sample;

use prism_report::html;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
        let line = "SKIPPED: no chromium on the path, the page was not tried in a browser\n";
        // Written past the test harness, which keeps quiet about tests that pass.
        std::io::stderr().write_all(line.as_bytes()).expect("standard error is open");
    }
    found
}

/// A folder of this test that is gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("prism-report-{name}-{}", std::process::id());
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

/// What the reader's system asks pages for.
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

#[test]
fn the_page_works_in_a_browser() {
    let Some(browser) = browser() else { return };
    let folder = Folder::new("page");
    let page = html::render(&sample::document());
    let checked = page.replace("</body>", &format!("<script>{CHECK}</script></body>"));
    assert_ne!(checked, page);
    folder.write("report.html", &checked);
    let host = folder.write("host.html", HOST);
    for (theme, answer) in [(Theme::Light, "all well in light"), (Theme::Dark, "all well in dark")]
    {
        let output = dump(&browser, &folder, &host, theme);
        assert_eq!(console(&output), Vec::<String>::new());
        let dom = String::from_utf8_lossy(&output.stdout);
        let said: Vec<&str> =
            dom.split("<p>").skip(1).filter_map(|p| p.split("</p>").next()).collect();
        assert_eq!(said, [answer; 2], "one answer for each width");
    }
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
