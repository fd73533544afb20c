//! docs/spec/fio-options.md agrees with the parser's table.

use std::path::Path;

use prism_workload::fio::options::{JobOption, NOT_SIMULATED, OPTIONS, Role};

/// The beginning of the row of an option, and its end.
fn row(option: &JobOption) -> (String, String) {
    let quoted = |name: &&str| format!("`{name}`");
    let names: Vec<_> = [option.name].iter().chain(option.aliases).map(quoted).collect();
    let names = format!("| {} | ", names.join(", "));
    match option.role {
        Role::Only(values, why) => {
            let values: Vec<_> = values.iter().map(quoted).collect();
            (format!("{names}only {}: ", values.join(" or ")), format!(" | {why} |"))
        }
        Role::Harmless => (names, " | no effect |".into()),
        Role::Simulated => (names, " |".into()),
    }
}

/// The rows of the table under a heading.
fn table<'a>(document: &'a str, heading: &str) -> Vec<&'a str> {
    let start = document.find(heading).unwrap_or_else(|| panic!("no heading {heading}"));
    let section = &document[start + heading.len()..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    section.lines().filter(|line| line.starts_with("| `")).collect()
}

type Belongs = fn(&Role) -> bool;

#[test]
fn the_document_lists_exactly_the_options() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/spec/fio-options.md");
    let document = std::fs::read_to_string(path).unwrap();
    let kinds: [(&str, Belongs); 3] = [
        ("## Simulated", |role| *role == Role::Simulated),
        ("## Taken with one meaning only", |role| matches!(role, Role::Only(..))),
        ("## Without effect", |role| *role == Role::Harmless),
    ];
    for (heading, belongs) in kinds {
        let expected: Vec<_> =
            OPTIONS.iter().filter(|option| belongs(&option.role)).map(row).collect();
        let rows = table(&document, heading);
        assert_eq!(rows.len(), expected.len(), "{heading}");
        for (row, (begin, end)) in rows.into_iter().zip(&expected) {
            assert!(row.starts_with(begin.as_str()) && row.ends_with(end.as_str()), "{row}");
            // Every option has a meaning.
            let meaning = row.split('|').nth(2).map(str::trim);
            assert!(meaning.is_some_and(|meaning| !meaning.is_empty()), "{row}");
        }
    }
    let refused = document.find("## Refused").expect("a heading");
    let listed: Vec<_> = document[refused..].split('`').skip(1).step_by(2).collect();
    assert_eq!(listed, NOT_SIMULATED.split_whitespace().collect::<Vec<_>>());
}
