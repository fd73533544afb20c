//! docs/spec/fio-options.md agrees with the parser's table.

use std::path::Path;

use prism_workload::fio::options::{JobOption, NOT_SIMULATED, OPTIONS, Role};

/// The row of an option.
fn row(option: &JobOption) -> String {
    let names: Vec<_> =
        std::iter::once(option.name).chain(option.aliases.iter().copied()).collect();
    let names = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let meaning = match option.role {
        Role::Only(values) => {
            let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
            format!("only {}: {}", values.join(" or "), option.meaning)
        }
        _ => option.meaning.to_owned(),
    };
    format!("| {names} | {meaning} | {} |", option.differs)
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
        ("## Taken with one meaning only", |role| matches!(role, Role::Only(_))),
        ("## Without effect", |role| *role == Role::Harmless),
    ];
    for (heading, belongs) in kinds {
        let words = OPTIONS.iter().filter(|option| belongs(&option.role));
        let expected: Vec<_> = words.map(row).collect();
        assert_eq!(table(&document, heading), expected, "{heading}");
    }
    let refused = document.find("## Refused").expect("a heading");
    let listed: Vec<_> = document[refused..].split('`').skip(1).step_by(2).collect();
    assert_eq!(listed, NOT_SIMULATED.split_whitespace().collect::<Vec<_>>());
}
