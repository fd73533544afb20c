//! The value of a setting.

use prism_base::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// The value of a setting of a design, with the type that it has in the file of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text, also a quantity with its unit; a list is the text of a TOML list.
    Text(String),
}

impl Scalar {
    /// The value as the text of a command line's option.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Float(value) => value.to_string(),
            Self::Text(text) => text.clone(),
        }
    }

    /// The value as a number with the unit that the name of its column ends in, if it is text with
    /// a size or a time.
    pub(super) fn quantity(&self) -> Option<(Quantity, i64)> {
        let Self::Text(text) = self else { return None };
        if let Ok(Bytes(bytes)) = Bytes::parse(text) {
            return Some((Quantity::Bytes, i64::try_from(bytes).ok()?));
        }
        let Nanos(nanos) = Nanos::parse(text).ok()?;
        Some((Quantity::Nanos, i64::try_from(nanos).ok()?))
    }
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Bytes,
    Nanos,
}

impl Quantity {
    /// What the name of a column of such numbers ends in.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Bytes => "_bytes",
            Self::Nanos => "_ns",
        }
    }

    /// `number` as a value with its unit.
    pub fn with_unit(self, number: i64) -> Scalar {
        Scalar::Text(match self {
            Self::Bytes => format!("{number}B"),
            Self::Nanos => format!("{number}ns"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_their_type_through_json_and_quantities_are_numbers() {
        let values = [
            Scalar::Bool(true),
            Scalar::Int(-3),
            Scalar::Float(2.0),
            Scalar::Float(0.1 + 0.2),
            Scalar::Text("4KiB".into()),
        ];
        let json = serde_json::to_string(&values).unwrap();
        assert_eq!(json, "[true,-3,2.0,0.30000000000000004,\"4KiB\"]");
        assert_eq!(serde_json::from_str::<Vec<Scalar>>(&json).unwrap(), values);
        assert_eq!(values[4].quantity(), Some((Quantity::Bytes, 4096)));
        assert_eq!(Scalar::Text("3us".into()).quantity(), Some((Quantity::Nanos, 3000)));
        assert_eq!((Scalar::Int(5).quantity(), values[4].text().as_str()), (None, "4KiB"));
        for quantity in [Quantity::Bytes, Quantity::Nanos] {
            assert_eq!(quantity.with_unit(77).quantity(), Some((quantity, 77)));
        }
    }
}
