//! The example in docs/spec/device-file.md is a valid device file, and the document describes it
//! correctly.

use prism_base::Bytes;
use prism_ftl::VictimPolicy;
use prism_ssd::DriveSpec;

const DOCUMENT: &str = include_str!("../../../../docs/spec/device-file.md");

/// The code block of the document that begins with `fence`.
fn part(fence: &str) -> &'static str {
    let start = DOCUMENT.find(fence).expect("the document has the part") + fence.len();
    let length = DOCUMENT[start..].find("```").expect("it ends");
    &DOCUMENT[start..start + length]
}

fn example() -> &'static str {
    part("```toml\n")
}

/// The example with the document's `[faults]`.
fn aged_example() -> String {
    format!("{}\n[faults]\n{}", example(), part("```toml faults\n"))
}

/// The example with the FTL that begins with `fence` and power-loss protection.
fn example_with_ftl(fence: &str) -> String {
    let example = example();
    let ftl = example.find("[ftl]\n").expect("an FTL") + 6;
    let drive = example.find("\n[drive]").expect("a drive");
    let text = [&example[..ftl], part(fence), &example[drive..]].concat();
    text.replace("power_loss_protection = false", "power_loss_protection = true")
}

/// Checks the error of the device file `text` with `from` replaced by `to`.
fn refused(text: &str, from: &str, to: &str, expected: &str) {
    assert!(text.contains(from), "{from}");
    let message = DriveSpec::from_toml(&text.replace(from, to)).unwrap_err().to_string();
    assert!(message.contains(expected), "{message}");
}

/// Checks that each of `fields` is required in `text` (`missing` gives the error without it), and
/// is refused in the example, which has another mapping.
fn belong_to_the_mapping(text: &str, fields: [&str; 3], missing: impl Fn(&str) -> String) {
    for field in fields {
        assert!(DOCUMENT.contains(&format!("\n| `{field}` |")), "{field} has no program unit");
        let line = text.lines().find(|line| line.starts_with(field)).expect("the field");
        refused(text, &format!("{line}\n"), "", &missing(field));
        refused(example(), "[ftl]", &format!("[ftl]\n{line}"), &format!("ftl.{field}"));
    }
}

#[test]
fn the_example_is_what_the_document_says() {
    let device = DriveSpec::from_toml(example()).unwrap();
    let geometry = device.geometry();
    let program_unit = Bytes(u64::from(geometry.units_per_program_unit()) * geometry.unit.0);
    let block = Bytes(u64::from(geometry.units_per_block()) * geometry.unit.0);
    assert_eq!((geometry.dies(), program_unit, block), (8, Bytes(32 << 10), Bytes(8 << 20)));
    assert_eq!(geometry.raw(), Bytes(32 << 30));
    let spare = device.over_provisioning();
    let claim = format!("{:.1} % nominal", 100.0 * spare.nominal);
    assert!(DOCUMENT.contains(&claim), "{claim}");
    let claim = format!("{:.1} % effective", 100.0 * spare.effective);
    assert!(DOCUMENT.contains(&claim), "{claim}");
}

/// The sections and their fields, from the parser's error message about an unknown field.
fn sections() -> Vec<(&'static str, Vec<String>)> {
    let known = |heading: &'static str| {
        let with = format!("{heading}unheard_of = 1\n");
        let text = match heading {
            "" => format!("{with}{}", aged_example()),
            _ => aged_example().replacen(heading, &with, 1),
        };
        let message = DriveSpec::from_toml(&text).unwrap_err().to_string();
        let (_, list) = message.split_once("expected one of ").expect(&message);
        (heading, list.split('`').skip(1).step_by(2).map(str::to_owned).collect())
    };
    ["", "[flash]\n", "[ftl]\n", "[drive]\n", "[faults]\n", "[datasheet]\n"].map(known).into()
}

/// The rows of the document's tables of fields in a section: the field, and whether it is optional,
/// because it has a default or belongs to one mapping only.
fn described(heading: &str) -> Vec<(String, bool)> {
    let title = match heading.trim() {
        "" => "### At the top".to_owned(),
        section => format!("### `{section}`"),
    };
    let start = DOCUMENT.find(&title).expect(&title) + title.len();
    let section = &DOCUMENT[start..];
    let section = &section[..section.find("\n### ").unwrap_or(section.len())];
    let mut all = Vec::new();
    for (number, table) in section.split("\n| field |").skip(1).enumerate() {
        let mut program_units = table.lines().take_while(|line| line.contains('|'));
        let defaults = program_units.next().is_some_and(|head| head.contains("| default |"));
        for program_unit in program_units.skip(1) {
            let cells: Vec<_> = program_unit.trim_matches('|').split('|').map(str::trim).collect();
            let default = defaults && !cells[3].is_empty() || number > 0;
            all.push((cells[0].trim_matches('`').to_owned(), default));
        }
    }
    all
}

#[test]
fn the_document_describes_the_fields_that_are_read() {
    for (heading, mut read) in sections() {
        let mut fields: Vec<_> = described(heading).into_iter().map(|(field, _)| field).collect();
        if heading.is_empty() {
            let sections = ["flash", "ftl", "range", "drive", "slc", "faults", "datasheet"];
            read.retain(|field| !sections.contains(&field.as_str()));
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
            let example = aged_example();
            let line = example.lines().find(|line| line.starts_with(&format!("{field} = ")));
            let optional = default || heading == "[datasheet]\n";
            let Some(line) = line else {
                assert!(optional, "the example lacks {field}, which has no default");
                continue;
            };
            let without = example.replacen(&format!("{line}\n"), "", 1);
            match DriveSpec::from_toml(&without) {
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
fn ranges_are_described_and_read() {
    let with = |range: &str| {
        let text = format!("{}\n{range}", example());
        text.replace("power_loss_protection = false", "power_loss_protection = true")
    };
    let range = part("```toml range\n");
    let device = DriveSpec::from_toml(&with(range)).unwrap();
    let shares: Vec<_> = device.range_devices().iter().map(DriveSpec::logical_units).collect();
    assert_eq!(shares, [7 << 18, 21 << 18], "a quarter of 28 GiB, and what is left");

    let message = DriveSpec::from_toml(&with(&format!("{range}unheard_of = 1\n"))).unwrap_err();
    let message = message.to_string();
    let (_, list) = message.split_once("expected one of ").expect(&message);
    let mut read: Vec<_> = list.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let program_units = described("[[range]]\n");
    let mut fields: Vec<_> = program_units.iter().map(|(field, _)| field.clone()).collect();
    read.sort();
    fields.sort();
    assert_eq!(fields, read, "fields of a range, as described and as read");
    for (field, default) in program_units {
        let needed = ["share", "mapping"].contains(&field.as_str());
        assert!(needed != default, "{field} has a default, or is required");
        let line = range.lines().find(|line| line.starts_with(&format!("{field} = ")));
        if let Some(line) = line.filter(|_| needed) {
            let error =
                DriveSpec::from_toml(&with(&range.replace(line, ""))).unwrap_err().to_string();
            assert!(error.contains(&format!("missing field `{field}`")), "{error}");
        }
    }
}

#[test]
fn the_hybrid_fields_are_described_and_required() {
    let text = example_with_ftl("```toml hybrid\n");
    let device = DriveSpec::from_toml(&text).unwrap();
    assert_eq!(device.usable_units(), 4095 * 2048, "all blocks but one");
    let fields = ["group_blocks", "group_log_blocks", "log_share"];
    belong_to_the_mapping(&text, fields, |field| format!("ftl.{field} = nothing"));
    let check = |from, to, expected| refused(&text, from, to, expected);
    check("victim = \"fifo\"", "victim = \"random\"", "random does not combine");
    check("\"separate\"", "\"shared\"", "ftl.frontiers = shared");
    check("protection = true", "protection = false", "drive.discards = true");
    check("group_blocks = 4", "group_blocks = 0", "group_blocks is 0");
    check("log_share = 0.07", "log_share = 1.5", "ftl.log_share = 1.5");
    check("log_share = 0.07", "log_share = 0.07\nsegment = \"1MiB\"", "ftl.segment");
    check("log_share = 0.07", "log_share = 0.07\nwear_move_behind_mean = 3", "ftl.wear_move");
    check("channels = 4", "channels = 4\ncopy_back = true", "flash.copy_back");
    check("channels = 4", "channels = 4\nsuperblock_dies = 4\nsuperblock_parity = true", "parity");
    check("free_blocks_high = 2", "free_blocks_high = 0", "free_blocks_high is 0");
    check("capacity = \"28GiB\"", "capacity = \"32GiB\"", "at most");
    check("capacity = \"28GiB\"", "capacity = \"1B\"", "less than a mapping unit; raise it");
}

#[test]
fn every_victim_policy_is_described_and_read() {
    for policy in VictimPolicy::EXAMPLES {
        assert!(DOCUMENT.contains(&format!("\n| `{policy}` |")), "{policy} has no program unit");
        let text = example().replace("victim = \"greedy\"", &format!("victim = \"{policy}\""));
        assert_eq!(DriveSpec::from_toml(&text).unwrap().page_config().victim, policy);
    }
}

#[test]
fn the_zone_fields_are_described_and_required() {
    let text = example_with_ftl("```toml zoned\n");
    let text = text.replace("capacity = \"28GiB\"", "capacity = \"56GiB\"");
    let shape = DriveSpec::from_toml(&text).unwrap().zone_shape().unwrap();
    assert_eq!((shape.count, shape.size, shape.capacity), (3584, 16 << 20, 8 << 20));
    let fields = ["zone_size", "max_open_zones", "max_active_zones"];
    belong_to_the_mapping(&text, fields, |_| "mapping \"zns\" needs".into());
    let check = |from, to, expected| refused(&text, from, to, expected);
    check("zone_size = \"16MiB\"", "zone_size = \"4MiB\"", "larger zone_size");
    check("max_open_zones = 8", "max_open_zones = 13", "at most max_active_zones");
    check("\"56GiB\"", "\"57GB\"", "whole number of zones");
    check("\"56GiB\"", "\"80GiB\"", "5120 zones on 4096 blocks");
    check("write-back", "write-through", "drive.write_cache");
    check("protection = true", "protection = false", "drive.power_loss_protection");
    check(
        "\"2MiB\"",
        "\"256KiB\"",
        "a program unit (what one program writes) for each active zone",
    );
    check("victim = \"greedy\"", "victim = \"greedy\"\nsegment = \"1MiB\"", "ftl.segment");
}

/// The example with the document's `[slc]`, and less capacity.
#[test]
fn the_slc_fields_are_described_and_required() {
    let section = part("```toml slc\n");
    let text = example()
        .replace("capacity = \"28GiB\"", "capacity = \"18GiB\"")
        .replace("[drive]\n", "free_blocks_critical = 3\n\n[drive]\n")
        .replace("[datasheet]\n", &format!("[slc]\n{section}\n[datasheet]\n"));
    let device = DriveSpec::from_toml(&text).unwrap();
    let geometry = device.geometry();
    assert_eq!(
        (geometry.slc_blocks_per_die_group(), geometry.slc_program_units_per_block()),
        (164, 256 / 3)
    );
    assert_eq!(geometry.slc_raw(), Bytes(8 * 164 * 85 * 2 * 16384));
    for line in section.lines() {
        let field = line.split(" = ").next().expect("a field");
        assert!(DOCUMENT.contains(&format!("\n| `{field}` |")), "{field} has no program unit");
        let message = DriveSpec::from_toml(&text.replace(&format!("\n{line}\n"), "\n"));
        let message = message.unwrap_err().to_string();
        assert!(message.contains(field), "{field}: {message}");
    }
    for field in ["below", "handle", "up_to"] {
        assert!(DOCUMENT.contains(&format!("\n| `{field}` |")), "{field} has no program unit");
    }
}

#[test]
fn errors_under_faults_slc_name_the_field() {
    let with = |lines: &str| {
        let mut device = DriveSpec::preset("slc-mlc").unwrap();
        let faults = format!("kind = \"mlc\"\nwear = 2500\n{lines}");
        device.faults = Some(toml::from_str(&faults).unwrap());
        device.check().map(|()| device.slc_fault_model().unwrap())
    };
    // A quarter of the 10,000 cycles is used up, and a quarter of the 100,000.
    let model = with("").unwrap();
    assert_eq!((model.wear, model.endurance), (25_000, 100_000));
    let own = with("[slc]\nkind = \"mlc\"\nwear = 7\nread_retries = 1\n").unwrap();
    assert_eq!((own.wear, own.ecc.retries), (7, 1));
    let check = |lines: &str, expected: &str| {
        let message = with(&format!("[slc]\n{lines}\n")).unwrap_err().to_string();
        assert!(message.contains(expected), "{lines}: {message}");
    };
    check("kind = \"plc\"", "faults.kind = plc (in [faults.slc]): kinds are");
    check("kind = \"slc\"\nretention = \"1d\"", "faults.slc.retention");
    check("kind = \"slc\"\n[slc.slc]\nkind = \"slc\"", "faults.slc.slc");
}

#[test]
fn errors_under_faults_name_the_field() {
    let aged = aged_example();
    let device = DriveSpec::from_toml(&aged).unwrap();
    let model = device.fault_model().unwrap();
    assert_eq!((model.wear, model.factory_bad, model.ecc.retries), (2500, 0.01, 5));
    // Each die group reserves two more erased blocks.
    let (ours, other) =
        (device.page_config(), DriveSpec::from_toml(example()).unwrap().page_config());
    assert_eq!(ours.reserve_blocks, other.reserve_blocks + 2);
    assert_eq!(ours.free_blocks_low, other.free_blocks_low + 2);
    let check = |line: &str, expected: &str| {
        let field = line.split(" = ").next().unwrap();
        let others = aged.lines().filter(|other| !other.starts_with(&format!("{field} = ")));
        let text = others.chain([line]).collect::<Vec<_>>().join("\n");
        let message = DriveSpec::from_toml(&text).unwrap_err().to_string();
        assert!(message.contains(expected), "{line}: {message}");
    };
    check("kind = \"plc\"", "faults.kind = plc: kinds are slc, mlc, tlc and qlc");
    check("wear = 2000000000", "faults.wear = 2000000000: must be at most");
    check("retention = \"40000d\"", "faults.retention");
    check("retention = 90", "invalid type");
    check("factory_bad = 1.5", "faults.factory_bad = 1.5: must be between 0 and 1");
    check("erase_failure = -0.1", "faults.erase_failure = -0.1");
    check("rber_wear_exponent = 17.0", "faults.rber_wear_exponent = 17");
    check("page_factors = []", "faults.page_factors = []: give one to eight factors");
    check("codeword = \"32B\"", "faults.codeword");
    check("correctable_bits = 8192", "faults.correctable_bits = 8192: must be fewer");
    check("read_retries = 101", "faults.read_retries = 101");
    check("retry_factor = nan", "faults.retry_factor = NaN");
    let slc = |lines: &str| {
        let text = format!("{aged}\n[faults.slc]\n{lines}");
        DriveSpec::from_toml(&text).unwrap_err().to_string()
    };
    assert!(slc("kind = \"slc\"\n").contains("faults.slc.kind = slc: [faults.slc] is for drives"));
    let hybrid = example_with_ftl("```toml hybrid\n") + "\n[faults]\nkind = \"tlc\"\n";
    assert!(DriveSpec::from_toml(&hybrid).unwrap().faults.is_some(), "whatever the mapping");
}
