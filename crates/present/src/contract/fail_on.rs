//! `--fail-on`: a condition under which a report fails, for continuous integration.

use prism_base::Nanos;
use prism_contract::rules::Rule;

/// What can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The score of a rule.
    Score(Rule),
    /// Write amplification.
    WriteAmplification,
    /// The 99th percentile of the latency of reads and writes, in nanoseconds.
    P99,
    /// Lifetime in days.
    LifetimeDays,
}

/// How a value is compared with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    AtMost,
    More,
    AtLeast,
}

/// A condition under which the command fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// As it was given.
    pub text: String,
    /// What is compared.
    pub quantity: Quantity,
    relation: Relation,
    limit: f64,
}

const NAMES: [(&str, Quantity); 8] = [
    ("request_scale", Quantity::Score(Rule::RequestScale)),
    ("locality", Quantity::Score(Rule::Locality)),
    ("aligned_sequentiality", Quantity::Score(Rule::AlignedSequentiality)),
    ("grouping_by_death_time", Quantity::Score(Rule::GroupingByDeathTime)),
    ("uniform_lifetime", Quantity::Score(Rule::UniformLifetime)),
    ("write_amplification", Quantity::WriteAmplification),
    ("p99", Quantity::P99),
    ("lifetime_days", Quantity::LifetimeDays),
];

/// Reads `request_scale<0.5`, `write_amplification>2` or `p99>=5ms`.
///
/// # Errors
/// What is wrong, and which names exist.
pub fn parse(text: &str) -> Result<Gate, String> {
    let at = text.find(['<', '>']).ok_or("write NAME<NUMBER or NAME>NUMBER, as in locality<0.5")?;
    let name = text[..at].trim();
    let rest = &text[at + 1..];
    let (relation, value) = match (&text[at..=at], rest.strip_prefix('=')) {
        ("<", None) => (Relation::Less, rest),
        ("<", Some(value)) => (Relation::AtMost, value),
        (_, None) => (Relation::More, rest),
        (_, Some(value)) => (Relation::AtLeast, value),
    };
    let found = NAMES.iter().find(|(known, _)| *known == name);
    let Some(&(_, quantity)) = found else {
        let names: Vec<_> = NAMES.iter().map(|(name, _)| *name).collect();
        return Err(format!("{name:?} is unknown; known are {}", names.join(", ")));
    };
    let value = value.trim();
    let limit = if quantity == Quantity::P99 {
        Nanos::parse(value).map_err(|error| error.to_string())?.0 as f64
    } else {
        let number = value.parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| format!("{value:?} is not a number"))?
    };
    Ok(Gate { text: text.to_owned(), quantity, relation, limit })
}

impl Gate {
    /// Why the command has to fail, if it has to. An unknown value fails.
    #[must_use]
    pub fn fails(&self, value: Option<f64>) -> Option<String> {
        let Some(value) = value else {
            return Some(format!("--fail-on {}: the trace does not determine it", self.text));
        };
        let fails = match self.relation {
            Relation::Less => value < self.limit,
            Relation::AtMost => value <= self.limit,
            Relation::More => value > self.limit,
            Relation::AtLeast => value >= self.limit,
        };
        let shown = match self.quantity {
            Quantity::P99 => Nanos(value as u64).to_string(),
            _ => format!("{value:.4}"),
        };
        fails.then(|| format!("--fail-on {}: it is {shown}", self.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read() {
        let check = |text: &str, value: f64, fails: bool| {
            let gate = parse(text).unwrap();
            assert_eq!(gate.fails(Some(value)).is_some(), fails, "{text} with {value}");
        };
        check("request_scale<0.5", 0.49, true);
        check("request_scale < 0.5", 0.5, false);
        check("locality<=0.5", 0.5, true);
        check("write_amplification>2", 2.0, false);
        check("write_amplification>=2", 2.0, true);
        check("p99>1ms", 1_000_001.0, true);
        check("lifetime_days<365", 400.0, false);
        let message = parse("p99>1ms").unwrap().fails(Some(2e6)).unwrap();
        assert_eq!(message, "--fail-on p99>1ms: it is 2 ms");
        let unknown = parse("locality<0.5").unwrap().fails(None).unwrap();
        assert!(unknown.contains("does not determine it"), "{unknown}");
    }

    #[test]
    fn nonsense_is_refused() {
        let refused = |text: &str, expected: &str| {
            let message = parse(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        };
        refused("locality", "NAME<NUMBER");
        refused("iops>5", "\"iops\" is unknown; known are request_scale, locality");
        refused("locality<x", "is not a number");
        refused("locality<nan", "is not a number");
        refused("p99>5", "unit");
    }
}
