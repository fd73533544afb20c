//! Every number of a preset says where it comes from, in a comment at the end of its line.

use prism_ssd::DriveSpec;

/// The page that explains the comments and lists the sources.
const PAGE: &str = include_str!("../../../../docs/presets.md");
/// The head of its table of sources.
const HEAD: &str = "| short name | source |\n|---|---|\n";

/// Where a number comes from, by how its comment begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// One of the sources of the page.
    Source,
    /// `fitted to`.
    Fitted,
    /// `from`: it follows from other numbers.
    Derived,
    /// `assumed`.
    Assumed,
}

/// The short names of the sources: the first column of the table.
fn sources() -> Vec<&'static str> {
    let (_, rows) = PAGE.split_once(HEAD).unwrap();
    let rows = rows.lines().map_while(|row| row.strip_prefix("| "));
    rows.filter_map(|row| row.split(" | ").next()).collect()
}

/// A line without its comment, and the comment.
fn split(line: &str) -> (&str, Option<&str>) {
    let mut quoted = false;
    for (at, byte) in line.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'#' if !quoted => return (&line[..at], Some(line[at + 1..].trim())),
            _ => {}
        }
    }
    (line, None)
}

/// The origin that a comment states.
fn origin(comment: &str, sources: &[&str]) -> Option<Origin> {
    let begins_with = |name: &str| {
        let rest = comment.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with([' ', ',', ':', ';'])).then_some(rest)
    };
    let more = |name: &str| begins_with(name).is_some_and(|rest| rest.len() > 1);
    if begins_with("assumed").is_some() {
        Some(Origin::Assumed)
    } else if more("fitted to") {
        Some(Origin::Fitted)
    } else if more("from") {
        Some(Origin::Derived)
    } else {
        sources.iter().any(|name| begins_with(name).is_some()).then_some(Origin::Source)
    }
}

/// The lines with numbers in the tables of a preset, each with its origin.
fn numbers<'a>(text: &'a str, sources: &[&str]) -> Vec<(&'a str, Option<Origin>)> {
    let tables = text.lines().skip_while(|line| !line.starts_with('['));
    let mut found = Vec::new();
    for line in tables {
        let (code, comment) = split(line);
        let value = code.split_once('=').map_or(code, |(_, value)| value);
        if value.contains(|c: char| c.is_ascii_digit()) || value.contains("\"infinite\"") {
            found.push((line, comment.and_then(|comment| origin(comment, sources))));
        }
    }
    found
}

fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    let names = DriveSpec::preset_names().chain(DriveSpec::zoned_preset_names());
    names.map(|name| (name, DriveSpec::preset_text(name).unwrap()))
}

#[test]
fn every_number_says_where_it_comes_from() {
    let sources = sources();
    for (preset, text) in presets() {
        let numbers = numbers(text, &sources);
        assert!(numbers.len() > 15, "{preset}: {} numbers", numbers.len());
        for (line, origin) in numbers {
            assert!(
                origin.is_some(),
                "{preset}: {line}\nsay where this number comes from: end the line with `# SOURCE` \
                 (a source that docs/presets.md lists), `# fitted to ...`, `# from ...` or \
                 `# assumed`"
            );
        }
    }
}

#[test]
fn a_preset_without_comments_is_found() {
    let sources = sources();
    for (preset, text) in presets() {
        let bare: Vec<_> = text.lines().map(|line| split(line).0).collect();
        let bare = bare.join("\n");
        assert_eq!(DriveSpec::from_toml(&bare), DriveSpec::preset(preset));
        let without = numbers(&bare, &sources);
        assert_eq!(without.len(), numbers(text, &sources).len(), "{preset}");
        assert!(without.iter().all(|(_, origin)| origin.is_none()), "{preset}");
    }
}

#[test]
fn comments_are_read() {
    let check = |lines: &str, expected: &[Option<Origin>]| {
        let text = format!("name = \"8\"\n[flash]\n{lines}");
        let found: Vec<_> = numbers(&text, &["FEMU", "SFS"]).iter().map(|found| found.1).collect();
        assert_eq!(found, expected, "{lines}");
    };
    check("cell = \"slc\"", &[]);
    check("channels = 8", &[None]);
    check("channels = 8  #", &[None]);
    check("channels = 8  # as usual", &[None]);
    check("channels = 8  # FEMUX", &[None]);
    check("channels = 8  # from", &[None]);
    check("channels = 8  # fitted", &[None]);
    check("channels = 8  # FEMU", &[Some(Origin::Source)]);
    check("channels = 8  # SFS, table 1", &[Some(Origin::Source)]);
    check("channels = 8  # fitted to the write rate", &[Some(Origin::Fitted)]);
    check("channels = 8  # from dies and planes", &[Some(Origin::Derived)]);
    check("channels = 8  # assumed; SFS says 9", &[Some(Origin::Assumed)]);
    check("page = \"4 # assumed\"", &[None]);
    check("channel_bandwidth = \"infinite\"", &[None]);
    check("t_read = [\n  \"1us\",\n  \"2us\",  # assumed\n]", &[None, Some(Origin::Assumed)]);
    check("[[range]]\nshare = 0.25  # assumed\n", &[Some(Origin::Assumed)]);
}

#[test]
fn the_page_counts_the_numbers_and_lists_no_source_in_vain() {
    let sources = sources();
    let all: Vec<_> = presets().flat_map(|(_, text)| numbers(text, &sources)).collect();
    let count = |of: Origin| all.iter().filter(|(_, origin)| *origin == Some(of)).count();
    let sentence = format!(
        "Of {} such fields {} come from sources, {} are fitted, {} follow from other numbers and \
         {} are assumed.",
        all.len(),
        count(Origin::Source),
        count(Origin::Fitted),
        count(Origin::Derived),
        count(Origin::Assumed)
    );
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&sentence), "docs/presets.md should say: {sentence}");
    for name in sources {
        let named = all.iter().any(|(line, _)| split(line).1.is_some_and(|c| c.contains(name)));
        assert!(named, "docs/presets.md lists {name}, which no preset names");
    }
}
