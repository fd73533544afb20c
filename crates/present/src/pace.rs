//! Parses and describes paces and passes.

use prism_replay::{Pace, Passes};

/// A pace in the syntax of [`parse_pace`], and a description of it.
#[must_use]
pub fn describe(pace: Pace) -> (String, &'static str) {
    match pace {
        Pace::Open { speed: 1.0 } => ("open".into(), "at the times of the trace"),
        Pace::Open { speed } => {
            (format!("open:{speed}"), "at the times of the trace, divided by this factor")
        }
        Pace::Closed { depth } => {
            (format!("closed:{depth}"), "as fast as this many in flight allow; times ignored")
        }
        Pace::Dependent { speed: 1.0 } => {
            ("dependent".into(), "as long after the completion they follow as in the trace")
        }
        Pace::Dependent { speed } => {
            (format!("dependent:{speed}"), "as in the trace, think times divided by this factor")
        }
    }
}

/// Parses a pace.
///
/// # Errors
/// The paces, or what is expected.
pub fn parse_pace(text: &str) -> Result<Pace, String> {
    let (kind, value) = match text.split_once(':') {
        Some((kind, value)) => (kind, Some(value)),
        None => (text, None),
    };
    let speed = || match value {
        None => Ok(1.0),
        Some(text) => match text.parse::<f64>() {
            Ok(speed) if speed.is_finite() && speed > 0.0 => Ok(speed),
            _ => Err(format!("{text:?} is not a speed; give a number above 0")),
        },
    };
    match kind {
        "open" => Ok(Pace::Open { speed: speed()? }),
        "dependent" => Ok(Pace::Dependent { speed: speed()? }),
        "closed" => match value.map(str::parse::<u32>) {
            Some(Ok(depth)) if depth > 0 => Ok(Pace::Closed { depth }),
            _ => Err("give the number of requests in flight, as in closed:32".into()),
        },
        _ => Err("paces are open, open:SPEED, closed:DEPTH, dependent, dependent:SPEED".into()),
    }
}

/// Parses the number of passes over a trace.
///
/// # Errors
/// The paces, or what is expected.
pub fn parse_passes(text: &str) -> Result<Passes, String> {
    match (text, text.parse::<u32>()) {
        ("steady", _) => Ok(Passes::Steady),
        ("until-read-only", _) => Ok(Passes::UntilReadOnly),
        (_, Ok(passes)) if passes > 0 => Ok(Passes::Fixed(passes)),
        _ => Err("give a number of at least 1, `steady` or `until-read-only`".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_are_parsed_and_described() {
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
