//! Paces and passes as text: as options take them, and in sentences.

use prism_replay::{Pace, Passes};

/// A pace as [`parse_pace`] takes it, and a sentence about it.
#[must_use]
pub fn describe(pace: Pace) -> (String, &'static str) {
    match pace {
        Pace::Open { speed: 1.0 } => ("open".into(), "at the trace's own times"),
        Pace::Open { speed } => (format!("open:{speed}"), "at the trace's times over this factor"),
        Pace::Closed { depth } => {
            (format!("closed:{depth}"), "as fast as so many in flight allow; times ignored")
        }
        Pace::Dependent { speed: 1.0 } => {
            ("dependent".into(), "each as long after the completion it followed as in the trace")
        }
        Pace::Dependent { speed } => {
            (format!("dependent:{speed}"), "think times of the trace over this factor")
        }
    }
}

/// Reads a pace.
///
/// # Errors
/// What there is.
pub fn parse_pace(text: &str) -> Result<Pace, String> {
    let (kind, value) = match text.split_once(':') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    let speed = || match value {
        None => Ok(1.0),
        Some(text) => match text.parse::<f64>() {
            Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
            _ => Err(format!("{text:?} is no speed; give a number above 0")),
        },
    };
    match kind {
        "open" => Ok(Pace::Open { speed: speed()? }),
        "dependent" => Ok(Pace::Dependent { speed: speed()? }),
        "closed" => match value.map(str::parse::<u32>) {
            Some(Ok(depth)) if depth > 0 => Ok(Pace::Closed { depth }),
            _ => Err("give the requests in flight, as closed:32".into()),
        },
        _ => Err("paces are open, open:SPEED, closed:DEPTH, dependent, dependent:SPEED".into()),
    }
}

/// Reads how often a trace is replayed.
///
/// # Errors
/// What there is.
pub fn parse_passes(text: &str) -> Result<Passes, String> {
    match (text, text.parse::<u32>()) {
        ("steady", _) => Ok(Passes::Steady),
        ("until-read-only", _) => Ok(Passes::UntilReadOnly),
        (_, Ok(passes)) if passes > 0 => Ok(Passes::Fixed(passes)),
        _ => Err("give a number from 1 on, `steady` or `until-read-only`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_read_and_told() {
        for text in ["open", "open:2.5", "closed:32", "dependent", "dependent:10"] {
            assert_eq!(describe(parse_pace(text).unwrap()).0, text);
        }
        for text in ["closed", "closed:0", "open:-1", "open:inf", "fast", "dependent:x"] {
            assert!(parse_pace(text).is_err(), "{text}");
        }
        assert_eq!(parse_passes("3"), Ok(Passes::Fixed(3)));
        assert_eq!(parse_passes("until-read-only"), Ok(Passes::UntilReadOnly));
        assert!(parse_passes("0").is_err());
    }
}
