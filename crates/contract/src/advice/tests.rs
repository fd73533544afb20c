//! Each rule with made-up figures: followed, violated and not decidable.

use super::*;
use crate::rules::Verdict as RuleVerdict;
use prism_base::Bytes;

/// Figures that follow all rules.
fn good() -> Inputs {
    Inputs {
        written: Bytes(1 << 30),
        overwritten: Bytes(1 << 28),
        pages_completing: 17,
        top_tenth: Some(0.12),
        uniform: RuleVerdict::Kept,
        density: Some(0.7),
        grouped: RuleVerdict::Strained,
        hot_cold: Some((2.0, 1.5)),
        unit: Bytes(4096),
        page: Bytes(16384),
        writes: 1000,
        writes_below_unit: 99,
        write_median: Some(Bytes(16384)),
        write_rate: 100e6,
        sustained: Some(500e6),
        dies: 4,
        cleaning: 0.25,
        slow_writes: 0,
        longest_write: Some(Nanos(40_000_000)),
        held_back: 0,
        mapped: Bytes(6 << 30),
        mapped_by_trace: Bytes(5 << 30),
        state: "filled".into(),
        capacity: Bytes(10 << 30),
        spare: 0.25,
        still_valid: Some(0.2),
        channels: 8,
        request_median: Some(Bytes(4096)),
        in_flight: Some(8),
        deeper: Some((16, 50e6, 200e6)),
    }
}

/// Figures that violate all rules but the last.
fn bad() -> Inputs {
    Inputs {
        overwritten: Bytes(1 << 29),
        uniform: RuleVerdict::Broken,
        writes_below_unit: 100,
        slow_writes: 61,
        longest_write: Some(Nanos(92_000_000)),
        mapped: Bytes(9 << 30),
        mapped_by_trace: Bytes(9 << 30),
        in_flight: Some(7),
        ..good()
    }
}

/// A trace without reads and writes.
fn nothing() -> Inputs {
    Inputs {
        written: Bytes(0),
        overwritten: Bytes(0),
        top_tenth: None,
        uniform: RuleVerdict::Unknown,
        density: None,
        grouped: RuleVerdict::Unknown,
        hot_cold: None,
        writes: 0,
        writes_below_unit: 0,
        write_median: None,
        longest_write: None,
        request_median: None,
        in_flight: None,
        still_valid: None,
        ..good()
    }
}

fn check(inputs: &Inputs, expected: [&str; 7]) {
    let all = advice(inputs);
    let verdicts: Vec<_> = all.iter().map(|advice| advice.verdict.key()).collect();
    assert_eq!(verdicts, expected, "{all:#?}");
    for (number, one) in (1..).zip(&all) {
        assert_eq!(one.number, number);
        assert!(one.advice.ends_with('.') && one.advice.len() > 20, "{one:?}");
        if let Verdict::NotDecidable(reason) = &one.verdict {
            assert!(reason.ends_with('.'), "{reason}");
        } else {
            assert!(one.numbers.ends_with('.'), "{one:?}");
        }
    }
}

#[test]
fn every_verdict_of_every_rule() {
    const F: &str = "follows";
    const V: &str = "violates";
    const N: &str = "not_decidable";
    check(&good(), [F; 7]);
    check(&bad(), [V, V, V, V, V, V, F]);
    check(&nothing(), [N, N, N, N, F, N, N]);
    // A request of eight pages keeps all eight channels busy; three in flight are too many.
    let big = |in_flight| Inputs { request_median: Some(Bytes(8 * 16384)), in_flight, ..good() };
    check(&big(Some(2)), [F; 7]);
    check(&big(Some(3)), [F, F, F, F, F, F, V]);
    check(&big(None), [F, F, F, F, F, F, N]);
    // Without completion times, it is not known whether small requests overlap.
    check(&Inputs { in_flight: None, ..good() }, [F, F, F, F, F, N, F]);
    // A write of one unit may have changed a single bit.
    let unit = Inputs { write_median: Some(Bytes(4096)), ..good() };
    check(&unit, [F, F, N, F, F, F, F]);
    // Lifetimes may differ if data that dies together is stored together.
    let grouped = Inputs { uniform: RuleVerdict::Broken, grouped: RuleVerdict::Kept, ..good() };
    check(&grouped, [F; 7]);
    check(&Inputs { held_back: 1, ..good() }, [F, F, F, V, F, F, F]);
    check(&Inputs { mapped: Bytes(8 << 30), ..good() }, [F; 7]);
    // A drive that is full because of its initial state shows nothing about the trace.
    let assumed = Inputs { mapped: Bytes(9 << 30), ..good() };
    check(&assumed, [F, F, F, F, N, F, F]);
    let Verdict::NotDecidable(why) = &advice(&assumed)[4].verdict else { panic!("undecided") };
    assert!(why.contains("fills 50.0 % of the drive") && why.contains("(--state filled)"), "{why}");
}

#[test]
fn texts_contain_the_figures() {
    let all = advice(&bad());
    let parts = [
        (
            "50.0 % of 1 GiB written overwrite data in place; 17 flash pages are read to complete",
            "",
        ),
        ("gets 12.0 % of the writes", "write amplification is 1.50 instead of 2.00"),
        (
            "The median write is 16 KiB, the mapping unit 4 KiB",
            "each costs at least 4 KiB of flash",
        ),
        ("61 writes take longer than 50 ms, the longest 92 ms", ""),
        // Of all flash, 0.9 / 1.25 = 0.72 is valid; 1 / (1 - 0.72) = 3.6.
        ("would be 72.0 % valid, and cleaning would have to compact 3.6 of them", ""),
        (
            "is 4 KiB with 7 in flight; requests are big from 128 KiB on",
            "With 16 requests in flight, the same work runs at 190.73 MiB/s instead of 47.68",
        ),
        ("on each of 8 channels", "one thread or two"),
    ];
    for (one, (numbers, text)) in all.iter().zip(parts) {
        assert!(one.numbers.contains(numbers), "{numbers:?} is not in {:?}", one.numbers);
        assert!(one.advice.contains(text), "{text:?} is not in {:?}", one.advice);
    }
    let alike = advice(&Inputs { hot_cold: Some((1.39, 1.38)), ..bad() });
    assert!(alike[1].advice.contains("do not help here"), "{}", alike[1].advice);
    let full = &all[4].numbers;
    assert!(full.contains("were 20.0 % valid, so it cleaned 1.2 to free one"), "{full}");
}
