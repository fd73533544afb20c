//! Feeds the one-line-one-request parsers with noise and with damaged real lines: they
//! never panic, and whatever comes out is a request that every other part can work with.

use crate::common::{damage, damaged};
use prism_testkit::cases;
use prism_trace::fio::FioParser;
use prism_trace::map::MapParser;
use prism_trace::mqsim::MqsimParser;
use prism_trace::summary::Summary;
use prism_trace::{LineParser, Op, Sink};
use proptest::prelude::*;

const MSR: &str = include_str!("../../../../samples/maps/msr.toml");
const ALIBABA: &str = include_str!("../../../../samples/maps/alibaba.toml");
const TENCENT: &str = include_str!("../../../../samples/maps/tencent.toml");
const SYSTOR17: &str = include_str!("../../../../samples/maps/systor17.toml");
const BPFTRACE: &str = include_str!("../../../../samples/maps/bpftrace-bio.toml");

/// MQSim's columns with times in picoseconds.
const PICOSECONDS: &str = r#"
delimiter = "whitespace"
[columns]
issue = { column = 1, unit = "ps" }
device = { column = 2 }
offset = { column = 3, unit = "512B" }
length = { column = 4, unit = "512B" }
operation = { column = 5 }
[operations]
write = ["0"]
read = ["1"]
"#;

/// Lines of each format, of which damaged ones are made.
const SAMPLES: [&str; 7] = [
    include_str!("../data/msr.csv"),
    include_str!("../data/alibaba.csv"),
    include_str!("../data/tencent.csv"),
    include_str!("../data/mqsim.txt"),
    include_str!("../../../../samples/formats/fio-v3.iolog"),
    include_str!("../data/systor17.csv"),
    include_str!("../data/bpftrace-bio.csv"),
];

/// Each parser, with the lines that have to come first.
fn parsers() -> Vec<(Box<dyn LineParser>, &'static str)> {
    vec![
        (Box::new(MapParser::new(MSR).unwrap()), ""),
        (Box::new(MapParser::new(ALIBABA).unwrap()), ""),
        (Box::new(MapParser::new(TENCENT).unwrap()), ""),
        (Box::new(MapParser::new(PICOSECONDS).unwrap()), ""),
        (Box::new(MqsimParser), ""),
        (Box::new(FioParser::new()), "fio version 2 iolog\n"),
        (Box::new(FioParser::new()), "fio version 3 iolog\n"),
        (Box::new(MapParser::new(SYSTOR17).unwrap()), SAMPLES[5]),
        (Box::new(MapParser::new(BPFTRACE).unwrap()), SAMPLES[6]),
    ]
}

/// Runs `lines` through `parser`; the records, and the number of skipped lines.
fn run<'a>(
    parser: &mut dyn LineParser,
    lines: impl Iterator<Item = &'a [u8]>,
) -> (Vec<prism_trace::Record>, u64) {
    let mut sink = Sink::new(i64::MAX as u64);
    for (index, line) in lines.enumerate() {
        let _ = parser.line(line, index as u64 + 1, &mut sink);
    }
    let skipped = sink.skips.rows().iter().map(|row| row.count).sum();
    let mut records = Vec::new();
    sink.drain(true, &mut records);
    (records, skipped)
}

fn check_all(text: &[u8]) {
    for (mut parser, first) in parsers() {
        let head = first.lines().take(2).map(str::as_bytes);
        let body = text.split(|&byte| byte == b'\n');
        let (records, skipped) = run(parser.as_mut(), head.chain(body.clone()));
        let lines = 2 + body.count() as u64;
        assert!(records.len() as u64 + skipped <= lines);
        let mut summary = Summary::new();
        for record in &records {
            assert!(record.len > 0 || record.op == Op::Flush);
            assert!(record.end() <= i64::MAX as u64);
            assert!(record.issue_ns >= 0, "times count from the first request");
        }
        // Requests of absurd length would only measure the memory of the bitmap.
        let sane = records.iter().filter(|record| record.len < 1 << 32);
        sane.for_each(|record| summary.add(record));
    }
}

#[test]
fn each_sample_is_read_by_its_own_parser() {
    let own: [(Box<dyn LineParser>, usize); 5] = [
        (Box::new(MapParser::new(MSR).unwrap()), 0),
        (Box::new(MapParser::new(ALIBABA).unwrap()), 1),
        (Box::new(MapParser::new(TENCENT).unwrap()), 2),
        (Box::new(MqsimParser), 3),
        (Box::new(FioParser::new()), 4),
    ];
    for (mut parser, sample) in own {
        let lines = SAMPLES[sample].lines().map(str::as_bytes);
        let (records, skipped) = run(parser.as_mut(), lines);
        assert!(records.len() >= 3, "sample {sample}");
        assert_eq!(skipped, 0, "sample {sample}");
    }
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn random_noise_does_no_harm(text in prop::collection::vec(any::<u8>(), 0..300)) {
        check_all(&text);
    }

    #[test]
    fn random_noise_in_the_alphabet_of_traces_does_no_harm(
        text in "[-0-9.,eE \t\nRWDFread/x:\r]{0,200}",
    ) {
        check_all(text.as_bytes());
    }

    #[test]
    fn random_damage_to_lines_does_no_harm(
        sample in prop::sample::select(SAMPLES.to_vec()),
        damage in damage(),
    ) {
        check_all(&damaged(sample.as_bytes(), damage));
    }

    #[test]
    fn random_maps_are_refused_or_work(map in "[a-z_=\"{}\\[\\], \n0-9]{0,120}") {
        if let Ok(mut parser) = MapParser::new(&map) {
            run(&mut parser, [&b"1 2 3"[..], b"", b"R,W"].into_iter());
        }
    }

    #[test]
    fn random_damage_to_a_map_is_refused_or_works(place in any::<u16>(), byte in any::<u8>()) {
        let mut map = SYSTOR17.as_bytes().to_vec();
        let at = usize::from(place) % map.len();
        map[at] = byte;
        if let Some(mut parser) = std::str::from_utf8(&map)
            .ok()
            .and_then(|map| MapParser::new(map).ok())
        {
            run(&mut parser, SAMPLES[5].lines().map(str::as_bytes));
        }
    }
}
