//! What operators see: `stats`, and figures for Prometheus.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use prism_cache::protocol::Settings;
use prism_cacheserver::Engine;

use crate::serve::{Running, options};

/// Sends a request and reads until the server closes.
fn http(server: &Running, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.metrics).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    // The server may answer before all is sent.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";

/// The samples of an exposition, each of which follows a description of its metric.
fn samples(answer: &str) -> BTreeMap<String, f64> {
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())), "{head}");
    let mut typed = "";
    let mut samples = BTreeMap::new();
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            typed = rest.split_once(' ').expect("a type").0;
        } else if !line.starts_with("# HELP ") {
            let (name, value) = line.rsplit_once(' ').expect("a value");
            assert_eq!(name.split('{').next(), Some(typed), "{line}");
            samples.insert(name.to_owned(), value.parse().unwrap());
        }
    }
    samples
}

#[test]
fn prometheus_reads_what_stats_says() {
    for engine in Engine::ALL {
        let server = Running::start(options(None, engine), Settings::default());
        let mut client = server.connect();
        assert_eq!(client.set("k", b"1"), "STORED");
        assert_eq!(client.stats("stats flash")["write_amplification"], "-");
        assert!(!http(&server, GET).contains("write_amplification"));
        for key in 0..30_000 {
            assert_eq!(client.set(&format!("k{key}"), &[7; 4000]), "STORED");
        }
        for key in (0..30_000).step_by(10) {
            client.get(&format!("k{key}"));
        }
        client.ask("gat 0 absent");
        let samples = samples(&http(&server, GET));
        let (general, flash) = (client.stats("stats"), client.stats("stats flash"));
        let number = |text: &String| text.parse::<f64>().unwrap();
        for (metric, name) in [
            ("gets_total{result=\"hit\"}", "get_hits"),
            ("gets_total{result=\"miss\"}", "get_misses"),
            ("items", "curr_items"),
            ("connections", "curr_connections"),
        ] {
            assert_eq!(samples[&format!("prism_cache_{metric}")], number(&general[name]), "{name}");
        }
        for (metric, name) in [
            ("hits_total{layer=\"flash\"}", "hits_flash"),
            ("cleaning_items_total{action=\"drop\"}", "cleaning_items_dropped"),
            ("flash_pages_total{cause=\"cache\"}", "flash_pages_programmed"),
            ("slabs{state=\"free\"}", "slabs_free"),
            ("write_amplification", "write_amplification"),
        ] {
            assert_eq!(samples[&format!("prism_cache_{metric}")], number(&flash[name]), "{name}");
        }
        assert_eq!(flash["gets_with_touch"], "1");
        // 120 MB were set on a device of 96 MiB.
        assert!(number(&flash["flash_blocks_erased"]) > 5.0, "{engine:?} {flash:?}");
        let amplification = number(&flash["write_amplification"]);
        assert!((1.0..2.0).contains(&amplification), "{engine:?}: {amplification}");
        assert_eq!(flash.contains_key("wear_blocks_max"), engine != Engine::Ideal);
        if engine != Engine::Ideal {
            let (most, mean) =
                (number(&flash["wear_blocks_max"]), number(&flash["wear_blocks_mean"]));
            assert!(most >= mean && mean > 0.1, "{engine:?}: {most}, {mean}");
            // The rate depends on the machine.
            assert!(number(&flash["life_days_at_this_rate"]).is_finite());
        }
        assert_eq!(client.ask("stats reset"), "RESET");
        assert_eq!(client.stats("stats flash")["gets_with_touch"], "0");
        server.stop();
    }
}

#[test]
fn clients_of_the_figures_are_bounded() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let status = |request: &[u8]| {
        let answer = http(&server, request);
        answer.get(9..12).unwrap_or_default().to_owned()
    };
    assert_eq!(status(b"GET / HTTP/1.1\r\n\r\n"), "404");
    assert_eq!(status(b"PUT /metrics HTTP/1.1\r\n\r\n"), "405");
    assert_eq!(status(b"stats\r\n\r\n"), "400");
    assert_eq!(
        status(&[b"GET /metrics HTTP/1.1\r\nA: ".as_slice(), &[b'a'; 9000]].concat()),
        "431"
    );
    // A client that sends nothing more is closed when its time is over, the others meanwhile
    // answered; those beyond the limit are refused.
    let slow: Vec<_> = (0..16)
        .map(|_| {
            let mut stream = TcpStream::connect(server.metrics).unwrap();
            stream.write_all(b"GET /metrics").unwrap();
            stream
        })
        .collect();
    let refused = (0..500).any(|_| status(GET) == "503");
    assert!(refused);
    assert_eq!(server.connect().ask("mn"), "MN");
    for mut stream in slow {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        assert_eq!(stream.read(&mut [0; 10]).unwrap(), 0);
    }
    assert_eq!(status(GET), "200");
    // One that ends its output is answered all the same.
    let mut stream = TcpStream::connect(server.metrics).unwrap();
    stream.write_all(GET).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    samples(&answer);
    server.stop();
}

#[test]
fn connections_are_listed() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let mut half = server.connect();
    assert_eq!(half.ask("mn"), "MN");
    half.send(b"set k 0 0 10\r\n");
    let mut client = server.connect();
    let listed = (0..500).any(|_| {
        let stats = client.stats("stats conns");
        let has = |end: &str, value: &str| {
            stats.iter().any(|(name, found)| name.ends_with(end) && found == value)
        };
        let address = format!("tcp:{}", server.address);
        assert!(has(":state", "conn_listening") && has(":addr", &address), "{stats:?}");
        assert!(has(":listen_addr", &address) && has(":state", "conn_parse_cmd"), "{stats:?}");
        has(":state", "conn_nread")
    });
    assert!(listed, "the other client sends a value");
    server.stop();
}

/// A client that sends many commands at once leaves the others their turns, and is answered.
#[test]
fn long_pipelines_are_interrupted() {
    let settings = Settings { commands_per_turn: 1, ..Settings::default() };
    let server = Running::start(options(None, Engine::Function), settings);
    let mut client = server.connect();
    client.send(&b"mn\r\n".repeat(500));
    (0..500).for_each(|_| assert_eq!(client.line(), "MN"));
    let yields: u64 = client.stats("stats")["conn_yields"].parse().unwrap();
    assert!(yields > 400, "{yields}");
    server.stop();
}
