//! The text form of a layout: TOML with addresses that carry units.

use std::fmt::Write;

use prism_base::Bytes;
use serde::Deserialize;
use toml::Spanned;

use super::{FsLayout, LayoutError, Region};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutToml {
    name: String,
    source: String,
    regions: Vec<Spanned<RegionToml>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionToml {
    start: Spanned<String>,
    end: Spanned<String>,
    label: String,
    group: Option<String>,
}

impl FsLayout {
    /// Reads the text form, `docs/spec/fs-layout.md`.
    ///
    /// # Errors
    /// [`LayoutError`] with the line and what to write there.
    pub fn from_toml(text: &str) -> Result<Self, LayoutError> {
        let wrong = |start: usize, what: String| {
            let before = &text.as_bytes()[..start.min(text.len())];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
            LayoutError::Text { line, what }
        };
        let toml: LayoutToml = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            wrong(start, error.message().to_owned())
        })?;
        let address = |field: &str, text: &Spanned<String>| {
            let bytes = Bytes::parse(text.get_ref()).map(|bytes| bytes.0);
            bytes.map_err(|error| wrong(text.span().start, format!("{field}: {error}")))
        };
        let mut starts = Vec::with_capacity(toml.regions.len());
        let mut regions = Vec::with_capacity(toml.regions.len());
        for region in toml.regions {
            starts.push(region.span().start);
            let RegionToml { start, end, label, group } = region.into_inner();
            let (start, end) = (address("start", &start)?, address("end", &end)?);
            let group = group.unwrap_or_else(|| label.clone());
            regions.push(Region { start, end, label, group });
        }
        Self::new(toml.name, toml.source, regions).map_err(|error| match error {
            LayoutError::Empty { index, .. } | LayoutError::Overlap { index, .. } => {
                wrong(starts[index], error.to_string())
            }
            other => other,
        })
    }

    /// The text form. [`FsLayout::from_toml`] reads the same layout back.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut text = String::new();
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let _ = writeln!(text, "name = {}", quoted(&self.name));
        let _ = writeln!(text, "source = {}", quoted(&self.source));
        text.push_str("regions = [\n");
        for Region { start, end, label, group } in &self.regions {
            let (start, end) = (exact(*start), exact(*end));
            let name = quoted(label);
            let _ = write!(text, "  {{ start = \"{start}\", end = \"{end}\", label = {name}");
            if group != label {
                let _ = write!(text, ", group = {}", quoted(group));
            }
            text.push_str(" },\n");
        }
        text.push_str("]\n");
        text
    }
}

/// `bytes` in the largest unit in which it is a whole number.
fn exact(bytes: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = |shift: u32| bytes > 0 && bytes.trailing_zeros() >= shift;
    match units.into_iter().find(|(shift, _)| whole(*shift)) {
        Some((shift, unit)) => format!("{}{unit}", bytes >> shift),
        None => format!("{bytes}B"),
    }
}
