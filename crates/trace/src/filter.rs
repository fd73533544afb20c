//! Selects records by phase, device, time and operation.

use crate::record::{Op, Record};
use crate::symbols::{Symbol, Symbols};

/// A selection as the user gives it. Fields that are `None` select everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Name of a phase.
    pub phase: Option<String>,
    /// Name of a device, as the source writes it.
    pub device: Option<String>,
    /// Issued at this time or later (ns since trace start).
    pub from_ns: Option<i64>,
    /// Issued before this time (ns since trace start).
    pub until_ns: Option<i64>,
    /// One of these operations.
    pub ops: Option<Vec<Op>>,
}

/// Why a selection cannot match anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectionError {
    /// No record and no marker of the trace names it.
    #[error("the trace has no {kind} {name:?}")]
    Unknown {
        /// `phase` or `device`.
        kind: &'static str,
        /// The requested name.
        name: String,
    },
    /// The end is not after the start.
    #[error("the time range from {from_ns} ns until {until_ns} ns is empty")]
    EmptyRange {
        /// Where it starts.
        from_ns: i64,
        /// Where it ends.
        until_ns: i64,
    },
    /// A list of operations with nothing in it.
    #[error("no operation is selected")]
    NoOperation,
}

/// A [`Selection`] against the names of one trace.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    phase: Option<Symbol>,
    device: Option<Symbol>,
    from_ns: i64,
    until_ns: Option<i64>,
    /// Bit `op as u8` is set for each operation that is kept.
    ops: u8,
}

impl Filter {
    /// Looks up the names of `selection`; the trace was read to its end before, so that
    /// `symbols` holds all of them.
    ///
    /// # Errors
    /// [`SelectionError`] if nothing can match.
    pub fn new(selection: &Selection, symbols: &Symbols) -> Result<Self, SelectionError> {
        let find = |kind, name: &Option<String>| match name {
            None => Ok(None),
            Some(name) => match symbols.get(name) {
                Some(symbol) => Ok(Some(symbol)),
                None => Err(SelectionError::Unknown { kind, name: name.clone() }),
            },
        };
        let from_ns = selection.from_ns.unwrap_or(i64::MIN);
        if let Some(until_ns) = selection.until_ns
            && until_ns <= from_ns
        {
            return Err(SelectionError::EmptyRange { from_ns, until_ns });
        }
        let ops = match &selection.ops {
            None => u8::MAX,
            Some(ops) if ops.is_empty() => return Err(SelectionError::NoOperation),
            Some(ops) => ops.iter().fold(0, |bits, &op| bits | 1 << op as u8),
        };
        Ok(Self {
            phase: find("phase", &selection.phase)?,
            device: find("device", &selection.device)?,
            from_ns,
            until_ns: selection.until_ns,
            ops,
        })
    }

    /// Whether `record` is selected.
    #[must_use]
    pub fn keeps(&self, record: &Record) -> bool {
        self.phase.is_none_or(|phase| phase == record.phase)
            && self.device.is_none_or(|device| device == record.device)
            && record.issue_ns >= self.from_ns
            && self.until_ns.is_none_or(|until_ns| record.issue_ns < until_ns)
            && self.ops & 1 << record.op as u8 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_restricts_alone() {
        let mut symbols = Symbols::new();
        let (app, sda) = (symbols.intern("app"), symbols.intern("sda"));
        let records = [
            Record { phase: app, ..Record::new(Op::Read, 0, 0, 512) },
            Record { device: sda, ..Record::new(Op::Write, 10, 0, 512) },
            Record { phase: app, device: sda, ..Record::new(Op::Flush, 20, 0, 0) },
        ];
        let check = |selection: Selection, expected: [bool; 3]| {
            let filter = Filter::new(&selection, &symbols).unwrap();
            let kept: Vec<bool> = records.iter().map(|record| filter.keeps(record)).collect();
            assert_eq!(kept, expected, "{selection:?}");
        };
        let all = Selection::default();
        check(all.clone(), [true; 3]);
        check(Selection { phase: Some("app".into()), ..all.clone() }, [true, false, true]);
        check(Selection { device: Some("sda".into()), ..all.clone() }, [false, true, true]);
        check(Selection { from_ns: Some(10), ..all.clone() }, [false, true, true]);
        check(Selection { until_ns: Some(10), ..all.clone() }, [true, false, false]);
        let ops = Some(vec![Op::Read, Op::Flush]);
        check(Selection { ops: ops.clone(), ..all.clone() }, [true, false, true]);
        let both = Selection { ops, device: Some("sda".into()), ..all };
        check(both, [false, false, true]);
    }

    #[test]
    fn what_cannot_match_is_refused() {
        let error = |selection| Filter::new(&selection, &Symbols::new()).unwrap_err();
        let all = Selection::default;
        assert_eq!(
            error(Selection { phase: Some("x".into()), ..all() }).to_string(),
            "the trace has no phase \"x\""
        );
        assert_eq!(
            error(Selection { from_ns: Some(5), until_ns: Some(5), ..all() }),
            SelectionError::EmptyRange { from_ns: 5, until_ns: 5 }
        );
        assert_eq!(error(Selection { ops: Some(vec![]), ..all() }), SelectionError::NoOperation);
    }
}
