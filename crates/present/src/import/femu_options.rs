//! FEMU's options: in a script that starts it, on its command line, or in a `.conf` file.
//!
//! A script composes the options in variables. The few forms of the shell that FEMU's own scripts
//! use are expanded: assignments, `$NAME`, `${NAME}`, quotation marks and continued lines.

use std::collections::BTreeMap;

use super::error::{ImportError, Result};
use super::femu;
use super::settings::{self, Setting, Settings};

/// How the options of a drive begin.
const DEVICE: &str = "-device femu";

/// Options by which a file is recognised as one of FEMU.
const TYPICAL: [&str; 4] = ["secs_per_pg", "pgs_per_blk", "luns_per_ch", "devsz_mb"];

/// Whether `text` looks like options of FEMU.
pub fn is_femu(text: &str) -> bool {
    let is_typical = |line: &str| {
        let name = line.split('=').next().unwrap_or_default();
        let name = name.trim().trim_start_matches("spp->");
        line.contains('=') && TYPICAL.contains(&name)
    };
    text.contains(DEVICE) || text.lines().any(is_typical)
}

/// The settings of a file.
pub fn settings(text: &str) -> Result<Settings> {
    let all = if text.contains(DEVICE) { command(text)? } else { list(text)? };
    Ok(Settings::new("FEMU", femu::WITHOUT_COUNTERPART, all))
}

/// The lines of a `.conf` file, or assignments to the members of `ssdparams` in C.
fn list(text: &str) -> Result<Vec<Setting>> {
    // Of C sources only constants count; what is computed from them follows.
    let is_constant =
        |line: &&str| line.trim_start().starts_with("spp->") && line.matches("->").count() == 1;
    let in_c = text.contains("spp->");
    let kept: Vec<&str> =
        text.lines().map(|line| if !in_c || is_constant(&line) { line } else { "" }).collect();
    let mut all = settings::lines(&kept.join("\n"), false)?;
    for setting in &mut all {
        if let Some(name) = setting.name.strip_prefix("spp->") {
            setting.name = name.to_owned();
        }
        // A .conf file has names for the modes.
        if setting.name == "mode" {
            let modes = ["ocssd", "bbssd", "nossd", "znssd", "csd", "kvssd"];
            let mode = modes.iter().position(|name| setting.value.eq_ignore_ascii_case(name));
            if let Some(mode) = mode {
                setting.name = "femu_mode".into();
                setting.value = mode.to_string();
            }
        }
    }
    // A file without a mode lists the parameters of the black-box drive.
    if !all.iter().any(|setting| setting.name == "femu_mode") {
        let line = all.first().map_or(1, |setting| setting.line);
        all.insert(0, Setting { name: "femu_mode".into(), value: "1".into(), line });
    }
    all.retain(|setting| !setting.value.is_empty());
    Ok(all)
}

/// The options of the drive in a command, with the variables of its script.
fn command(text: &str) -> Result<Vec<Setting>> {
    let mut variables = BTreeMap::new();
    let mut drives: Vec<(usize, String)> = Vec::new();
    for (line, content) in logical_lines(text) {
        if let Some((name, value)) = assignment(&content) {
            let value = expand(value, &variables);
            variables.insert(name.to_owned(), value);
        } else if !content.trim_start().starts_with("echo") {
            drives.extend(devices(&expand(&content, &variables)).map(|options| (line, options)));
        }
    }
    if drives.is_empty() {
        // The command that uses the variable may be in another script.
        let composed = variables.values().flat_map(|value| devices(value));
        drives.extend(composed.map(|options| (1, options)));
    }
    match &drives[..] {
        [(line, options)] => Ok(split(options, *line)),
        [] => {
            let what = format!("{DEVICE} is followed by no options; give them after a comma");
            Err(ImportError::Line { line: 1, what })
        }
        [_, (line, _), ..] => {
            let what = format!("a second {DEVICE}: a device file describes one drive");
            Err(ImportError::Line { line: *line, what })
        }
    }
}

/// Lines of the script, those that end in a backslash joined, without comments.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut open = false;
    for (number, line) in (1..).zip(text.lines()) {
        // In the shell a comment begins where a word could begin.
        let line = if line.trim_start().starts_with('#') { "" } else { line };
        let begins = line.match_indices('#').find(|&(at, _)| line[..at].ends_with([' ', '\t']));
        let line = begins.map_or(line, |(at, _)| line[..at].trim_end());
        let continued = line.strip_suffix('\\');
        let content = continued.unwrap_or(line);
        match lines.last_mut().filter(|_| open) {
            Some((_, last)) => last.push_str(content),
            None => lines.push((number, content.to_owned())),
        }
        open = continued.is_some();
    }
    lines
}

/// The name and the value of an assignment.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once('=')?;
    let name = name.trim_start_matches("export ").trim_start_matches("local ");
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    // NAME=VALUE COMMAND sets a variable for the command alone.
    let quoted = value.contains('"') || value.contains('\'') || value.starts_with("$((");
    (is_name && (quoted || !value.trim().contains(' '))).then_some((name, value.trim()))
}

/// `text` without quotation marks and with the values of variables. Unknown ones are kept.
fn expand(text: &str, variables: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '"', '\'']) {
        out.push_str(&rest[..at]);
        let marked = &rest[at..];
        let Some(after) = marked.strip_prefix('$') else {
            rest = &marked[1..];
            continue;
        };
        let (name, length) = match after.strip_prefix('{').and_then(|name| name.split_once('}')) {
            Some((name, _)) => (name, name.len() + 2),
            None => {
                let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
                let name = &after[..after.find(is_end).unwrap_or(after.len())];
                (name, name.len())
            }
        };
        match variables.get(name) {
            Some(value) => out.push_str(value),
            None => out.push_str(&marked[..1 + length]),
        }
        rest = &after[length..];
    }
    out.push_str(rest);
    out
}

/// The options of each FEMU drive in a command; FEMU's other devices have longer names.
fn devices(command: &str) -> impl Iterator<Item = String> {
    let parts = command.split(DEVICE).skip(1).filter(|rest| rest.starts_with(','));
    parts.map(|rest| rest[1..].split_whitespace().next().unwrap_or_default().to_owned())
}

/// `name=value,name=value` as settings. QEMU writes a comma in a value twice.
fn split(options: &str, line: usize) -> Vec<Setting> {
    const COMMA: &str = "\u{1}";
    let options = options.replace(",,", COMMA);
    let option = |option: &str| {
        let (name, value) = option.split_once('=').unwrap_or((option, "on"));
        Setting { name: name.to_owned(), value: value.replace(COMMA, ","), line }
    };
    options.split(',').filter(|part| !part.is_empty()).map(option).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_begins_after_a_space_or_a_tab() {
        let check = |text: &str, expected: &str| assert_eq!(logical_lines(text)[0].1, expected);
        check("nchs=8 # channels", "nchs=8");
        check("nchs=8\t# channels", "nchs=8");
        check("name=a#b", "name=a#b");
        check("# all", "");
    }
}
