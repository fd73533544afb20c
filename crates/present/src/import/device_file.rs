//! A device file in the making: fields, where each comes from, and what is approximate.

use std::fmt::Display;

use prism_base::Bytes;
use prism_ssd::{DriveSpec, DriveSpecError, fit};

use super::settings::{Given, comment, without_control};

/// One field.
#[derive(Clone, Debug)]
struct Field {
    /// Section and name, such as `flash.page`.
    path: &'static str,
    /// Its value as TOML.
    value: String,
    /// The setting that it comes from.
    origin: String,
    /// What is approximate.
    note: Option<String>,
}

/// A device file in the making.
#[derive(Clone, Debug)]
pub struct DeviceFile {
    name: String,
    simulator: &'static str,
    fields: Vec<Field>,
}

/// The fewest erased blocks with which cleaning works.
const FREE_BLOCKS_MIN: u32 = 2;

/// The capacity at which `prism sim` simulates.
const SIMULATED: Bytes = Bytes(8 << 30);

/// The sections in the order of a device file.
const SECTIONS: [&str; 3] = ["flash", "ftl", "drive"];

impl DeviceFile {
    /// A file for the drive called `name` of `simulator`.
    pub fn new(name: &str, simulator: &'static str) -> Self {
        let keep = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = name.chars().map(|c| if keep(c) { c } else { '-' }).collect();
        Self { name, simulator, fields: Vec::new() }
    }

    /// The simulator.
    pub fn simulator(&self) -> &'static str {
        self.simulator
    }

    /// Adds a field with `value` as TOML, which means the same as its `origin`.
    pub fn field(&mut self, path: &'static str, value: impl ToString, origin: &str) {
        let (value, origin) = (value.to_string(), origin.to_owned());
        self.fields.push(Field { path, value, origin, note: None });
    }

    /// Adds the value of a setting.
    pub fn given<T: Display>(&mut self, path: &'static str, given: &Given<T>) {
        self.field(path, &given.value, &given.origin);
    }

    /// Adds a setting as a string in quotation marks.
    pub fn word(&mut self, path: &'static str, given: &Given<&str>) {
        self.field(path, format!("\"{}\"", given.value), &given.origin);
    }

    /// Adds a time.
    pub fn time(&mut self, path: &'static str, nanos: &Given<u64>) {
        self.field(path, time(nanos.value), &nanos.origin);
    }

    /// Adds the time of the firmware for reads and writes.
    pub fn firmware(&mut self, nanos: &Given<u64>) {
        self.time("drive.firmware_read", nanos);
        self.time("drive.firmware_write", nanos);
    }

    /// Adds a field that is only similar to its `origin`, as `note` says.
    pub fn approximate(
        &mut self,
        path: &'static str,
        value: impl ToString,
        origin: &str,
        note: impl Into<String>,
    ) {
        self.field(path, value, origin);
        self.note(path, note);
    }

    /// States an approximation in a field that is there already.
    pub fn note(&mut self, path: &'static str, note: impl Into<String>) {
        let field = self.get(path);
        field.note = Some(match field.note.take() {
            Some(before) => format!("{before} {}", note.into()),
            None => note.into(),
        });
    }

    fn get(&mut self, path: &'static str) -> &mut Field {
        let found = self.fields.iter_mut().find(|field| field.path == path);
        found.expect("the converter has added the field")
    }

    /// How many fields are approximate.
    pub fn approximations(&self) -> usize {
        self.fields.iter().filter(|field| field.note.is_some()).count()
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let Self { name, simulator, fields } = self;
        let mut text = comment(
            &format!(
                "A drive of {simulator}, converted by `prism device import`. Comments name the \
                 setting that a field comes from and what is approximate."
            ),
            "# ",
        );
        text.push_str(&format!(
            "name = \"{name}\"\ntitle = \"drive imported from {simulator}\"\n\
             source = \"{simulator} configuration {name}\"\n"
        ));
        for section in SECTIONS {
            text.push_str(&format!("\n[{section}]\n"));
            for field in fields {
                let Some((_, name)) = field.path.split_once('.').filter(|(of, _)| *of == section)
                else {
                    continue;
                };
                if let Some(note) = &field.note {
                    text.push_str(&comment(&format!("Approximation: {note}"), "# "));
                }
                let origin = without_control(&field.origin);
                text.push_str(&format!("{name} = {}  # {origin}\n", field.value));
            }
        }
        text
    }

    /// The description of the drive, and the drive that `prism sim` makes of it. Where the data
    /// does not fit next to the erased blocks that cleaning keeps, it keeps as many as fit, and the
    /// file says so.
    ///
    /// # Errors
    /// [`DriveSpecError`] if no number fits.
    pub fn fit_watermarks(&mut self) -> Result<(DriveSpec, DriveSpec), DriveSpecError> {
        let error = match self.specs() {
            Ok(specs) => return Ok(specs),
            Err(error) => error,
        };
        let wanted: u32 = self.get("ftl.free_blocks_low").value.parse().unwrap_or(0);
        let (mut works, mut fails) = (FREE_BLOCKS_MIN, wanted);
        let Ok(mut specs) = self.with_watermarks(works).specs() else { return Err(error) };
        while fails > works + 1 {
            let middle = works + (fails - works) / 2;
            match self.with_watermarks(middle).specs() {
                Ok(better) => (works, specs) = (middle, better),
                Err(_) => fails = middle,
            }
        }
        let at_full_size = match DriveSpec::from_toml(&self.text()) {
            Ok(_) => format!(" With --capacity device, {wanted} fit as well."),
            Err(_) => String::new(),
        };
        *self = self.with_watermarks(works);
        let note = format!(
            "{} asks for {wanted} erased blocks of a die group. Next to the data, the open blocks \
             and the reserve of cleaning, {works} fit, also in the drive of {SIMULATED} that prism \
             sim makes.{at_full_size}",
            self.simulator
        );
        self.note("ftl.free_blocks_low", note);
        Ok(specs)
    }

    /// The description, checked, and the drive of the size that `prism sim` simulates; the same if
    /// that is larger.
    fn specs(&self) -> Result<(DriveSpec, DriveSpec), DriveSpecError> {
        let spec = DriveSpec::from_toml(&self.text())?;
        let small =
            if spec.capacity() > SIMULATED { fit(&spec, SIMULATED)?.device } else { spec.clone() };
        Ok((spec, small))
    }

    fn with_watermarks(&self, low: u32) -> Self {
        let mut other = self.clone();
        other.set_watermarks(low);
        other
    }

    fn set_watermarks(&mut self, low: u32) {
        for field in &mut self.fields {
            let most = match field.path {
                "ftl.free_blocks_low" | "ftl.free_blocks_high" | "ftl.free_blocks_critical" => low,
                _ => continue,
            };
            let value: u32 = field.value.parse().unwrap_or(most);
            field.value = value.min(most).to_string();
        }
    }
}

/// `bytes` as the text of a size, exactly.
pub fn size(bytes: u64) -> String {
    let units = [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    format!("\"{}\"", whole(bytes, &units))
}

/// `nanos` as the text of a time, exactly.
pub fn time(nanos: u64) -> String {
    format!("\"{}\"", bare_time(nanos))
}

/// As [`time`], without quotation marks.
pub fn bare_time(nanos: u64) -> String {
    whole(nanos, &[(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")])
}

/// A list of times, or one time if all are equal.
pub fn times(nanos: &[u64]) -> String {
    if nanos.iter().all(|time| *time == nanos[0]) {
        return time(nanos[0]);
    }
    let each: Vec<_> = nanos.iter().map(|&nanos| time(nanos)).collect();
    format!("[{}]", each.join(", "))
}

/// `bytes` per second as the text of a bandwidth, exactly; 0 for no limit.
pub fn bandwidth(bytes: u64) -> String {
    if bytes == 0 {
        return "\"infinite\"".into();
    }
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"), (1, "B")];
    format!("\"{}/s\"", whole(bytes, &units))
}

/// `amount` in the largest unit of which it is a whole number.
fn whole(amount: u64, units: &[(u64, &str)]) -> String {
    let fits = |(scale, _): &&(u64, &str)| amount.is_multiple_of(*scale) && amount >= *scale;
    let (scale, unit) = units.iter().find(fits).unwrap_or(&units[units.len() - 1]);
    format!("{}{unit}", amount / scale)
}
