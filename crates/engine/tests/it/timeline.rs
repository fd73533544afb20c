//! The timeline compared with closed forms, and with a simple model that keeps every reservation
//! and tries every end of one.

use prism_testkit::seeds;

use prism_base::{Bytes, Nanos, Rng, SimTime};
use prism_engine::timeline::{Program, Span, Timeline};
use prism_nand::{PageTimes, Timing};

const COMMAND: u64 = 3;
const ERASE: u64 = 4000;

/// The channel transfers one byte per nanosecond.
fn timing() -> Timing {
    Timing {
        t_read: PageTimes::by_type(&[Nanos(50), Nanos(70)]).unwrap(),
        t_program: PageTimes::by_type(&[Nanos(600), Nanos(900)]).unwrap(),
        t_erase: Nanos(ERASE),
        t_command: Nanos(COMMAND),
        bus_bytes_per_second: Some(1_000_000_000),
    }
}

fn at(time: u64) -> SimTime {
    SimTime(time)
}

fn span(begin: u64, end: u64) -> Span {
    Span { begin: at(begin), end: at(end) }
}

#[test]
fn single_operations_match_the_closed_form() {
    let mut timeline = Timeline::new(2, 4, timing());
    let mut now = 1000;
    for page in 0..6 {
        let (read, program) = ([50, 70][page % 2], [600, 900][page % 2]);
        for die in 0..4 {
            let page = page as u32;
            let expected = span(now, now + COMMAND + read + 16);
            assert_eq!(timeline.read(die, page, Bytes(16), at(now)), expected);
            now = expected.end.0;
            let sent = now + COMMAND + 64;
            let expected = Program { begin: at(now), sent: at(sent), end: at(sent + program) };
            assert_eq!(timeline.program(die, page, Bytes(64), at(now)), expected);
            now = expected.end.0 + 7;
            assert_eq!(timeline.erase(die, at(now)), span(now, now + COMMAND + ERASE));
            now += COMMAND + ERASE;
        }
    }
    let infinite = Timing { bus_bytes_per_second: None, t_command: Nanos::ZERO, ..timing() };
    let mut timeline = Timeline::new(1, 1, infinite);
    assert_eq!(timeline.read(0, 1, Bytes(1 << 30), at(5)), span(5, 75));
    assert_eq!(timeline.program(0, 0, Bytes(1 << 30), at(5)).sent, at(75));
}

#[test]
fn dies_of_a_channel_overlap_their_cells_and_share_the_bus() {
    let mut timeline = Timeline::new(2, 4, timing());
    let mut read = |die| timeline.read(die, 0, Bytes(40), at(0));
    let first = COMMAND + 50 + 40;
    assert_eq!(read(0), span(0, first));
    assert_eq!(read(2), span(COMMAND, first + 40), "its transfer waits for the channel");
    assert_eq!(read(1), span(0, first), "another channel");
    let mut timeline = Timeline::new(1, 2, timing());
    let mut program = |die| timeline.program(die, 0, Bytes(100), at(0));
    let sent = COMMAND + 100;
    assert_eq!(program(0), Program { begin: at(0), sent: at(sent), end: at(sent + 600) });
    assert_eq!(
        program(1),
        Program { begin: at(sent), sent: at(2 * sent), end: at(2 * sent + 600) }
    );
}

#[test]
fn gaps_are_filled_in_the_order_of_requests() {
    let mut timeline = Timeline::new(1, 1, timing());
    let read = COMMAND + 50 + 16;
    let behind = 1000 + read + COMMAND + ERASE;
    assert_eq!(timeline.read(0, 0, Bytes(16), at(1000)), span(1000, 1000 + read));
    assert_eq!(timeline.erase(0, at(0)), span(1000 + read, behind), "no gap is long enough");
    assert_eq!(timeline.read(0, 0, Bytes(16), at(900)), span(900, 900 + read));
    assert_eq!(timeline.read(0, 0, Bytes(16), at(900)), span(behind, behind + read));
    assert_eq!(timeline.read(0, 0, Bytes(16), at(0)), span(0, read));
}

#[test]
#[should_panic(expected = "before the last forget_before")]
fn operations_before_forgotten_time_are_refused() {
    let mut timeline = Timeline::new(1, 1, timing());
    timeline.forget_before(at(1000));
    timeline.read(0, 0, Bytes(16), at(999));
}

/// All reservations, without optimisation.
struct Naive {
    channels: Vec<Vec<Span>>,
    dies: Vec<Vec<Span>>,
}

impl Naive {
    fn free(spans: &[Span], begin: u64, end: u64) -> bool {
        let free = |span: &Span| end <= span.begin.0 || span.end.0 <= begin;
        begin == end || spans.iter().all(free)
    }

    /// The first time from `ready` on, of those at which a reservation ends.
    fn earliest(&self, die: usize, ready: u64, fits: impl Fn(u64) -> bool) -> u64 {
        let channel = die % self.channels.len();
        let ends = self.dies[die].iter().chain(&self.channels[channel]).map(|span| span.end.0);
        let mut times: Vec<u64> = ends.filter(|&end| end > ready).chain([ready]).collect();
        times.sort_unstable();
        times.into_iter().find(|&time| fits(time)).expect("the end of everything is free")
    }

    fn take(&mut self, die: usize, ready: u64, on_channel: u64, whole: u64) -> Span {
        let (bus, cells) = (&self.channels[die % self.channels.len()], &self.dies[die]);
        let begin = self.earliest(die, ready, |time| {
            Self::free(bus, time, time + on_channel) && Self::free(cells, time, time + whole)
        });
        let channel = die % self.channels.len();
        self.channels[channel].push(span(begin, begin + on_channel));
        self.dies[die].push(span(begin, begin + whole));
        span(begin, begin + whole)
    }

    fn read(&mut self, die: usize, cells: u64, transfer: u64, ready: u64) -> Span {
        let channel = die % self.channels.len();
        let (bus, busy) = (&self.channels[channel], &self.dies[die]);
        let out = |begin: u64| {
            let loaded = begin + COMMAND + cells;
            self.earliest(die, loaded, |time| Self::free(bus, time, time + transfer))
        };
        let begin = self.earliest(die, ready, |time| {
            Self::free(bus, time, time + COMMAND) && Self::free(busy, time, out(time) + transfer)
        });
        let out = out(begin);
        let taken = [span(begin, begin + COMMAND), span(out, out + transfer)];
        self.channels[channel].extend(taken.iter().filter(|span| span.begin < span.end));
        self.dies[die].push(span(begin, out + transfer));
        span(begin, out + transfer)
    }

    fn check_disjoint(&self, seed: u64) {
        for spans in self.channels.iter().chain(&self.dies) {
            let mut spans = spans.clone();
            spans.sort_unstable_by_key(|span| (span.begin, span.end));
            for pair in spans.windows(2) {
                assert!(pair[0].end <= pair[1].begin, "seed {seed}: {pair:?}");
            }
        }
    }
}

fn any_order(seed: u64) {
    let mut rng = Rng::stream(seed, "timeline");
    let channels = 1 + rng.below(3) as usize;
    let dies = channels * (1 + rng.below(3) as usize);
    let mut timeline = Timeline::new(channels as u32, dies as u32, timing());
    let mut naive = Naive { channels: vec![Vec::new(); channels], dies: vec![Vec::new(); dies] };
    let (pace, spread) = (1 + rng.below(1000), 1 + rng.below(10_000));
    let mut horizon = 0;
    for step in 0..150 {
        let context = format!("seed {seed}, step {step}");
        let ready = horizon.max(step * pace) + rng.below(spread);
        let die = rng.below(dies as u64) as usize;
        let (page, amount) = (rng.below(5), rng.below(3) * 100);
        let odd = (page % 2) as usize;
        let (d, p, r, bytes) = (die as u32, page as u32, at(ready), Bytes(amount));
        match rng.below(8) {
            0..4 => {
                let expected = naive.read(die, [50, 70][odd], amount, ready);
                assert_eq!(timeline.read(d, p, bytes, r), expected, "{context}");
                assert!(expected.begin >= r, "{context}");
            }
            4..6 => {
                let on_channel = COMMAND + amount;
                let whole = on_channel + [600, 900][odd];
                let Span { begin, end } = naive.take(die, ready, on_channel, whole);
                let expected = Program { begin, sent: begin + Nanos(on_channel), end };
                assert_eq!(timeline.program(d, p, bytes, r), expected, "{context}");
            }
            6 => {
                let expected = naive.take(die, ready, COMMAND, COMMAND + ERASE);
                assert_eq!(timeline.erase(d, r), expected, "{context}");
            }
            _ => {
                horizon = horizon.max(ready.saturating_sub(spread));
                timeline.forget_before(at(horizon));
            }
        }
    }
    naive.check_disjoint(seed);
}

#[test]
fn random_reservations_equal_trying_every_time() {
    seeds(0..1500).for_each(any_order);
}
