//! The example in docs/spec/device-file.md is a device file, and says of itself what is
//! true.

use prism_base::Bytes;
use prism_ftl::VictimPolicy;
use prism_ssd::Device;

const DOCUMENT: &str = include_str!("../../../docs/spec/device-file.md");

fn example() -> &'static str {
    let start = DOCUMENT.find("```toml\n").expect("the document has an example") + 8;
    let length = DOCUMENT[start..].find("```").expect("the example ends");
    &DOCUMENT[start..start + length]
}

#[test]
fn the_example_is_what_the_document_says() {
    let device = Device::from_toml(example()).unwrap();
    let geometry = device.geometry();
    let row = Bytes(u64::from(geometry.units_per_row()) * geometry.unit.0);
    let block = Bytes(u64::from(geometry.units_per_block()) * geometry.unit.0);
    assert_eq!((geometry.dies(), row, block), (8, Bytes(32 << 10), Bytes(8 << 20)));
    assert_eq!(geometry.raw(), Bytes(32 << 30));
    let spare = device.over_provisioning();
    let told = format!("{:.1} % nominal", 100.0 * spare.nominal);
    assert!(DOCUMENT.contains(&told), "{told}");
    let told = format!("{:.1} % effective", 100.0 * spare.effective);
    assert!(DOCUMENT.contains(&told), "{told}");
}

/// The sections, each with the fields that are read: the parser lists them when it meets
/// one that it does not know.
fn sections() -> Vec<(&'static str, Vec<String>)> {
    let known = |heading: &'static str| {
        let with = format!("{heading}unheard_of = 1\n");
        let text = match heading {
            "" => format!("{with}{}", example()),
            _ => example().replacen(heading, &with, 1),
        };
        let message = Device::from_toml(&text).unwrap_err().to_string();
        let (_, list) = message.split_once("expected one of ").expect(&message);
        (heading, list.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    };
    ["", "[flash]\n", "[ftl]\n", "[drive]\n", "[datasheet]\n"].map(known).into()
}

/// The rows of the document's table of fields below the heading of a section: field, and
/// whether the table says that it has a default.
fn described(heading: &str) -> Vec<(String, bool)> {
    let title = match heading.trim() {
        "" => "### At the top".to_owned(),
        section => format!("### `{section}`"),
    };
    let start = DOCUMENT.find(&title).expect(&title);
    let table = DOCUMENT[start..].find("| field |").expect("a table of fields");
    let rows = DOCUMENT[start + table..].lines().take_while(|line| line.starts_with('|'));
    let defaults = rows.clone().next().is_some_and(|head| head.contains("| default |"));
    rows.skip(2)
        .map(|row| {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            (cells[0].trim_matches('`').to_owned(), defaults && !cells[3].is_empty())
        })
        .collect()
}

#[test]
fn the_document_describes_the_fields_that_are_read() {
    for (heading, mut read) in sections() {
        let mut fields: Vec<_> = described(heading).into_iter().map(|(field, _)| field).collect();
        if heading.is_empty() {
            read.retain(|field| !["flash", "ftl", "drive", "datasheet"].contains(&field.as_str()));
        }
        read.sort();
        fields.sort();
        assert_eq!(fields, read, "fields of {heading:?}, as described and as read");
    }
}

#[test]
fn a_field_without_a_default_is_required() {
    for (heading, _) in sections() {
        for (field, default) in described(heading) {
            let line = example().lines().find(|line| line.starts_with(&format!("{field} = ")));
            let optional = default || heading == "[datasheet]\n";
            let Some(line) = line else {
                assert!(optional, "the example lacks {field}, which has no default");
                continue;
            };
            let without = example().replacen(&format!("{line}\n"), "", 1);
            match Device::from_toml(&without) {
                Ok(_) => assert!(optional, "{field} may be left out"),
                Err(error) => {
                    let message = error.to_string();
                    assert!(message.contains(&format!("missing field `{field}`")), "{message}");
                    assert!(!optional, "{field} may not be left out");
                }
            }
        }
    }
}

#[test]
fn every_victim_policy_is_described_and_read() {
    for policy in VictimPolicy::EXAMPLES {
        assert!(DOCUMENT.contains(&format!("\n| `{policy}` |")), "{policy} has no row");
        let text = example().replace("victim = \"greedy\"", &format!("victim = \"{policy}\""));
        assert_eq!(Device::from_toml(&text).unwrap().ftl_config().victim, policy);
    }
}
