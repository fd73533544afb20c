//! A device as text, one field a line, to tell whether two are the same.

use crate::spec::DriveSpec;

/// Fields that say nothing about how the drive works.
const NAMES: [&str; 4] = ["name", "title", "source", "datasheet"];

/// Every field of `device` that matters, as `flash.channels = 12`, in the order of the
/// device's sections. Quantities are in their smallest unit.
pub(super) fn describe(device: &DriveSpec) -> String {
    let mut lines = String::new();
    let mut path: Vec<String> = Vec::new();
    // The pretty form has one value a line, and its nesting in brackets.
    for line in format!("{device:#?}").lines().map(str::trim) {
        let line = line.strip_suffix(',').unwrap_or(line);
        if line.starts_with(['}', ')', ']']) {
            path.pop();
            continue;
        }
        let (field, value) = match line.split_once(": ") {
            Some((field, value)) => (field, value),
            None => ("", line),
        };
        if value.ends_with(['{', '(', '[']) {
            path.push(field.to_owned());
            continue;
        }
        let mut names = path.iter().map(String::as_str).chain([field]).filter(|n| !n.is_empty());
        let field = names.by_ref().collect::<Vec<_>>().join(".");
        let section = field.split('.').next().unwrap_or_default();
        // Drives were described before they could fail.
        let cannot_fail = field == "faults" && value == "None";
        if !NAMES.contains(&section) && !cannot_fail {
            lines.push_str(&format!("{field} = {value}\n"));
        }
    }
    lines
}

/// The first field in which two descriptions differ, with both values.
pub(super) fn first_difference(saved: &str, here: &str) -> Option<(String, String, String)> {
    if saved == here {
        return None;
    }
    // A list has a line for each element.
    let value = |text: &str, field: &str| {
        let fields = text.lines().filter_map(|line| line.split_once(" = "));
        let values = fields.filter(|&(name, _)| name == field).map(|(_, value)| value);
        let values = values.collect::<Vec<_>>().join(", ");
        if values.is_empty() { "not given".to_owned() } else { values }
    };
    let fields = saved.lines().chain(here.lines()).filter_map(|line| line.split_once(" = "));
    let mut fields = fields.map(|(field, _)| (field, value(saved, field), value(here, field)));
    let (field, saved, here) = fields.find(|(_, saved, here)| saved != here)?;
    Some((field.to_owned(), saved, here))
}

#[cfg(test)]
mod tests {
    use prism_base::{Bytes, Nanos};

    use super::*;

    #[test]
    fn every_field_that_matters_is_named() {
        let device = DriveSpec::preset("femu").unwrap();
        let text = describe(&device);
        for field in ["flash.channels = 8", "ftl.frontiers = ", "drive.queue_depth = "] {
            assert!(text.lines().any(|line| line.starts_with(field)), "{field} in {text}");
        }
        assert!(!text.contains("title") && !text.contains("datasheet"), "{text}");
        let check = |change: fn(&mut DriveSpec), field: &str| {
            let mut other = device.clone();
            change(&mut other);
            let found = first_difference(&text, &describe(&other)).unwrap();
            assert_eq!(found.0, field, "{found:?}");
            let found = first_difference(&describe(&other), &text).unwrap();
            assert_eq!(found.0, field, "{found:?}");
        };
        check(|d| d.flash.channels = 4, "flash.channels");
        check(|d| d.flash.t_erase = Nanos(1), "flash.t_erase");
        check(|d| d.drive.capacity = Bytes(1 << 20), "drive.capacity");
        check(|d| d.ftl.segment = Some(Bytes(1 << 20)), "ftl.segment");
        check(|d| d.drive.queue_weights = vec![1], "drive.queue_weights");
        check(|d| d.drive.power_loss_protection ^= true, "drive.power_loss_protection");
        let mut same = device.clone();
        same.name = "other".into();
        same.datasheet.random_read_iops = Some(7);
        assert_eq!(first_difference(&text, &describe(&same)), None);
    }
}
