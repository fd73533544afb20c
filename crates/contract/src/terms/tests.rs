//! Each term with made-up figures on both sides of its threshold.

use super::*;

fn rates(sequential: f64, random: f64) -> Rates {
    Rates { sequential, random }
}

fn counts(of: &[(Cause, u64)]) -> Counts {
    let mut counts = Counts::default();
    of.iter().for_each(|&(cause, count)| counts[cause] += count);
    counts
}

/// Figures like those of a small SSD, with a write amplification of 2.
fn ssd() -> Inputs {
    let probe = Probe {
        reads: [rates(50e6, 50e6), rates(800e6, 400e6)],
        writes: [rates(100e6, 80e6), rates(300e6, 100e6)],
        near_ns: 80_000.0,
        distant_ns: 82_000.0,
        first: 400e6,
        last: 390e6,
        dies: 32,
    };
    Inputs {
        probe: Ok(probe),
        segment: None,
        written: Bytes(200 << 12),
        write_amplification: Some(2.0),
        units: counts(&[(Cause::Host, 300), (Cause::Gc, 100)]),
        operations: counts(&[(Cause::Host, 600), (Cause::Gc, 200), (Cause::Map, 200)]),
        erases: 40,
        simulated: Nanos(10_000_000_000),
        endurance: 3000,
        lifetime_days: Some(730.0),
        latency: Some((Nanos(20_000), Nanos(5_000_000))),
    }
}

/// Figures like those of a disk, for which the terms hold.
fn disk() -> Inputs {
    let ssd = ssd();
    let probe = Probe {
        reads: [rates(86.2e6, 0.6e6), rates(86.2e6, 1.2e6)],
        writes: [rates(86.8e6, 1.3e6), rates(86.8e6, 1.3e6)],
        near_ns: 1e6,
        distant_ns: 15e6,
        first: 2e6,
        last: 1e6,
        dies: 1,
    };
    Inputs {
        probe: Ok(probe),
        write_amplification: Some(1.0),
        units: counts(&[(Cause::Host, 300)]),
        operations: counts(&[(Cause::Host, 1000)]),
        lifetime_days: Some(NO_WEAR_DAYS),
        ..ssd
    }
}

/// A trace without writes, reads or flash operations, and no probe.
fn idle() -> Inputs {
    Inputs {
        probe: Err(ProbeError::Replay(prism_replay::ReplayError::Interrupted)),
        written: Bytes(0),
        write_amplification: None,
        units: Counts::default(),
        operations: Counts::default(),
        lifetime_days: None,
        latency: None,
        ..ssd()
    }
}

fn check(inputs: &Inputs, expected: [Option<bool>; 6]) {
    let terms = terms(inputs);
    let holds: Vec<_> = terms.iter().map(|term| term.holds).collect();
    assert_eq!(holds, expected, "{terms:#?}");
    for (number, term) in (1..).zip(&terms) {
        assert_eq!(term.number, number);
        assert!(term.why.ends_with('.'), "{}", term.why);
    }
}

#[test]
fn terms_hold_for_a_disk_and_fail_for_an_ssd() {
    let (yes, no) = (Some(true), Some(false));
    check(&ssd(), [no, no, yes, no, no, no]);
    check(&disk(), [yes, yes, no, yes, yes, yes]);
    check(&idle(), [None; 6]);
}

#[test]
fn decisions_change_at_the_thresholds() {
    let with = |change: fn(&mut Inputs)| {
        let mut inputs = ssd();
        change(&mut inputs);
        inputs
    };
    let check = |number: usize, inputs: Inputs, holds: bool| {
        assert_eq!(terms(&inputs)[number - 1].holds, Some(holds), "{number}: {inputs:?}");
    };
    // A single slow pattern is enough, because software has to avoid it.
    check(1, with(|i| i.probe.as_mut().unwrap().writes[1] = rates(200.0, 10.0)), true);
    check(1, with(|i| i.probe.as_mut().unwrap().writes[1] = rates(199.0, 10.0)), false);
    check(2, with(|i| i.probe.as_mut().unwrap().distant_ns = 120_000.0), true);
    check(2, with(|i| i.probe.as_mut().unwrap().distant_ns = 119_000.0), false);
    check(3, with(|i| i.probe.as_mut().unwrap().last = 330e6), true);
    check(3, with(|i| i.probe.as_mut().unwrap().last = 320e6), false);
    // A write amplification below 1, because the buffer absorbs writes, counts as none.
    check(4, with(|i| i.write_amplification = Some(0.5)), true);
    check(4, with(|i| i.write_amplification = Some(1.05)), true);
    check(4, with(|i| i.write_amplification = Some(1.06)), false);
    check(5, with(|i| i.lifetime_days = Some(NO_WEAR_DAYS - 1.0)), false);
    let tenth = |i: &mut Inputs| i.operations = counts(&[(Cause::Host, 9), (Cause::Wear, 1)]);
    check(6, with(tenth), true);
}

#[test]
fn reasons_contain_the_figures() {
    let terms = terms(&Inputs { segment: Some(Bytes(1 << 27)), ..ssd() });
    let parts = [
        "reads 47.68 MiB/s against 47.68 MiB/s (1.00 times) with 1 in flight",
        "takes 82 us, a read near it 80 us: 1.02 times",
        "Each 128 MiB of addresses has separate erase blocks",
        "2.00 bytes are programmed, by cause: host 1.50, gc 0.50",
        "the 3000 cycles of a block last 2.0 years on the described drive; 40 blocks were erased \
         in the measured 10 s",
        "40.0 % of the page reads, page programs and block erases are issued by the drive itself \
         (gc 20.0 %, map 20.0 %). The term holds up to 10.0 %. The longest request takes 5 ms, 250 \
         times the median of 20 us.",
    ];
    for (term, part) in terms.iter().zip(parts) {
        assert!(term.why.contains(part), "{part:?} is not in {:?}", term.why);
    }
}

#[test]
fn reasons_say_what_happened_to_the_little_that_is_written() {
    let why = |inputs: Inputs| terms(&inputs)[3..5].iter().map(|t| t.why.clone()).collect();
    let check = |inputs: Inputs, expected: [&str; 2]| {
        let why: Vec<String> = why(inputs);
        for (why, part) in why.iter().zip(expected) {
            assert!(why.contains(part), "{part:?} is not in {why:?}");
        }
    };
    check(idle(), ["The trace writes nothing.", "No flash is programmed"]);
    let buffered = Inputs { written: Bytes(4096), ..idle() };
    check(buffered, ["stays in the write buffer.", "No flash is programmed"]);
    let estimated = Inputs { written: Bytes(4096), write_amplification: Some(1.0), ..idle() };
    check(estimated, ["about 1.00 bytes are programmed: an estimate", "too short to judge"]);
}

#[test]
fn the_table_is_quoted_correctly() {
    let short = |quoted: Quoted| match quoted {
        Quoted::True => 'T',
        Quoted::False => 'F',
        Quoted::Approximately => '~',
    };
    let columns = |of: fn(&Term) -> Quoted| -> String {
        terms(&ssd()).iter().map(|term| short(of(term))).collect()
    };
    assert_eq!(columns(|term| term.disk), "T~FTT~");
    assert_eq!(columns(|term| term.raid), "TFFFTF");
    assert_eq!(columns(|term| term.mems), "TTTTTT");
    assert_eq!(columns(|term| term.ssd), "FFFFFF");
    assert_eq!(Quoted::Approximately.name(), "approximately");
}
