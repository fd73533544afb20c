//! tmp bench
#![allow(clippy::print_stdout, missing_docs)]
use prism_trace::{CountFrom, Format, Reader, ReaderOptions};
use std::fmt::Write;

fn run(format: Format, map: Option<&str>, text: &[u8]) -> (f64, usize, u64) {
    let options = ReaderOptions {
        format,
        blkparse_format: None,
        map_toml: map.map(str::to_owned),
        count_from: CountFrom::Issue,
    };
    let mut reader = Reader::new(options, 1).unwrap();
    let mut out = Vec::new();
    let (mut n, mut sum) = (0usize, 0u64);
    let start = busy();
    let mut eat = |out: &mut Vec<prism_trace::Record>| {
        n += out.len();
        for r in out.iter() {
            sum = sum.wrapping_mul(31).wrapping_add(
                r.issue_ns as u64
                    ^ r.offset
                    ^ r.len
                    ^ (r.op as u64)
                    ^ r.complete.get().unwrap_or(7) as u64,
            );
        }
        out.clear();
    };
    for piece in text.chunks(256 << 10) {
        reader.feed(0, piece, &mut out).unwrap();
        eat(&mut out);
    }
    reader.finish(&mut out).unwrap();
    eat(&mut out);
    (busy() - start, n, sum)
}
fn busy() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|w| w.parse::<u64>().ok()).unwrap_or(0) as f64 / 1e9
}
fn main() {
    let n = 400_000u64;
    let mut rng = 1u64;
    let mut next = || {
        rng = rng.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        rng >> 33
    };
    let mut texts: Vec<(&str, Format, String, String)> = Vec::new();
    let base = std::env::args().nth(1).unwrap_or("/tmp/x/maps".into());
    for (name, format) in [
        ("systor17", Format::Systor17),
        ("k5cloud", Format::K5cloud),
        ("spc", Format::Spc),
        ("msr", Format::Msr),
        ("alibaba", Format::Alibaba),
        ("tencent", Format::Tencent),
        ("mqsim", Format::Mqsim),
        ("midas", Format::Midas),
    ] {
        let mut t = String::new();
        for i in 0..n {
            let off = (next() % 50_000_000) * 4096;
            let len = (1 + next() % 32) * 4096;
            let us = i * 37;
            let rw = if next() % 2 == 0 { "R" } else { "W" };
            let dev = next() % 5;
            match name {
                "systor17" => writeln!(
                    t,
                    "14555918{:02}.{:06}000,0.000{:06},{rw},{dev},{off},{len}",
                    us / 1_000_000,
                    us % 1_000_000,
                    next() % 1_000_000
                ),
                "k5cloud" => writeln!(
                    t,
                    "{dev},14555918{:02}.{:06}000,{rw},{off},{len}",
                    us / 1_000_000,
                    us % 1_000_000
                ),
                "spc" => writeln!(
                    t,
                    "{dev},{},{len},{rw},{}.{:06}",
                    off / 512,
                    us / 1_000_000,
                    us % 1_000_000
                ),
                "msr" => writeln!(
                    t,
                    "{},hm,{dev},{},{off},{len},{}",
                    128166372003061629u64 + us * 10,
                    if rw == "R" { "Read" } else { "Write" },
                    next() % 10000
                ),
                "alibaba" => writeln!(t, "{dev},{rw},{off},{len},{}", 1577808000000626u64 + us),
                "tencent" => writeln!(
                    t,
                    "{},{},{},{},{dev}",
                    1538323200 + i / 1000,
                    off / 512,
                    len / 512,
                    next() % 2
                ),
                "mqsim" => {
                    writeln!(t, "{} {dev} {} {} {}", us * 1000, off / 512, len / 512, next() % 2)
                }
                _ => writeln!(
                    t,
                    "{}.{:06} {} {} {len} {dev}",
                    us / 1_000_000,
                    us % 1_000_000,
                    next() % 2,
                    off / 4096
                ),
            }
            .unwrap();
        }
        let map = std::fs::read_to_string(format!("{base}/{name}.toml")).unwrap();
        texts.push((name, format, t, map));
    }
    for (name, format, text, map) in &texts {
        let (mut own, mut by_map) = (f64::MAX, f64::MAX);
        for _ in 0..5 {
            let a = run(*format, None, text.as_bytes());
            let b = run(Format::Map, Some(map), text.as_bytes());
            assert_eq!((a.1, a.2), (b.1, b.2), "{name}");
            own = own.min(a.0);
            by_map = by_map.min(b.0);
        }
        let rate = |s: f64| n as f64 / 1e6 / s;
        println!(
            "{name:9} own {:6.2} M lines/s   map {:6.2} M lines/s   {:.2}",
            rate(own),
            rate(by_map),
            own / by_map
        );
    }
}
