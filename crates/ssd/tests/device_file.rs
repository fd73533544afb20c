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

#[test]
fn every_field_is_described_and_required() {
    let mut section = "";
    for line in example().lines() {
        if line.starts_with('[') {
            section = line;
        }
        let Some((field, _)) = line.split_once(" = ") else { continue };
        assert!(DOCUMENT.contains(&format!("\n| `{field}` |")), "{field} has no row");
        let without = example().replacen(&format!("{line}\n"), "", 1);
        let result = Device::from_toml(&without);
        if section == "[datasheet]" {
            assert!(result.is_ok(), "{field} of the data sheet may be left out");
        } else {
            let message = result.unwrap_err().to_string();
            assert!(message.contains(&format!("missing field `{field}`")), "{message}");
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
