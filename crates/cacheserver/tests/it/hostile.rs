//! Clients that send nonsense, too much, or nothing, and those that do not read.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use prism_base::Rng;
use prism_cache::protocol::Settings;
use prism_cacheserver::Engine;
use prism_testkit::seeds;

use crate::serve::{Running, options};

#[test]
fn random_bytes_do_not_harm_the_server() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let words = [
        "get",
        "set",
        "mg",
        "ms",
        "md",
        "ma",
        "cas",
        "incr",
        "touch",
        "gat",
        "a",
        "b",
        "0",
        "1",
        "-1",
        "99999999999",
        "noreply",
        "v",
        "q",
        "T5",
        "N0",
        "C1",
        "I",
        "MA",
        "\r\n",
        "\n",
        " ",
        "x\r\n",
        "stats",
        "flush_all",
        "verbosity",
        "delete",
        "\0",
        "é",
    ];
    for seed in seeds(0..40) {
        let mut rng = Rng::stream(seed, "words");
        let mut bytes = Vec::new();
        for _ in 0..200 {
            bytes.extend_from_slice(words[rng.below(words.len() as u64) as usize].as_bytes());
            bytes.push(if rng.below(4) == 0 { b'\n' } else { b' ' });
        }
        let mut stream = TcpStream::connect(server.address).unwrap();
        // The server may have closed the connection before all is sent.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let mut client = server.connect();
        assert_eq!(client.ask("mn"), "MN", "seed {seed}");
    }
    server.stop();
}

/// A client of the binary protocol, which waits for an answer that it understands, gets one.
#[test]
fn the_binary_protocol_is_refused() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    // The header of a get: opcode, length of the key, the client's number.
    let mut request = vec![0x80, 0, 0, 3];
    request.extend([0, 0, 0, 0, 0, 0, 0, 3, 0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0, 0, 0, 0, 0]);
    request.extend(b"key");
    for len in [24, request.len()] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(&request[..len]).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the server closes the connection");
        assert_eq!(answer[..8], [0x81, 0, 0, 0, 0, 0, 0, 0x83], "{len} bytes");
        let text = std::str::from_utf8(&answer[24..]).unwrap();
        assert_eq!(answer[8..12], (text.len() as u32).to_be_bytes());
        assert!(text.contains("use the text protocol"), "{text}");
        assert_eq!(answer[12..16], [0xde, 0xad, 0xbe, 0xef], "{len} bytes");
    }
    server.stop();
}

#[test]
fn an_endless_line_ends_the_connection() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    for begin in ["", "get ", "set "] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(begin.as_bytes()).unwrap();
        let chunk = [b'a'; 64 << 10];
        let sent = (0..200).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        assert!(sent < 200, "{begin:?}: the server took 12 MiB of one line");
    }
    assert_eq!(server.connect().ask("mn"), "MN");
    server.stop();
}

/// A client that asks and does not read holds a bounded amount of memory, and no other client up.
#[test]
fn a_slow_reader_holds_only_itself_up() {
    let server = Running::start(options(None, Engine::Function), Settings::default());
    let mut client = server.connect();
    assert_eq!(client.set("big", &vec![7; 400_000]), "STORED");
    let mut slow = TcpStream::connect(server.address).unwrap();
    slow.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let many = b"get big\r\n".repeat(1000);
    let stuck = (0..1000).any(|_| slow.write_all(&many).is_err());
    assert!(stuck, "the server reads on while its answers are not read");
    assert_eq!(client.ask("mn"), "MN");
    drop(slow);
    server.stop();
}

#[test]
fn connections_beyond_the_limit_are_refused() {
    let settings = Settings { maxconns: 3, ..Settings::default() };
    let server = Running::start(options(None, Engine::Function), settings);
    let mut clients: Vec<_> = (0..3).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| assert_eq!(client.ask("mn"), "MN"));
    let mut refused = server.connect();
    assert_eq!(refused.line(), "ERROR Too many open connections");
    drop(clients.pop());
    // The place is free when the server has seen the end of the connection.
    let again = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(2));
        let mut client = server.connect();
        client.send(b"mn\r\n");
        client.line() == "MN"
    });
    assert!(again);
    server.stop();
}

/// More reads at once than buffers should be made for: they wait for each other, and all come.
#[test]
fn many_long_reads_at_once_are_all_answered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache");
    let server = Running::start(options(Some(&path), Engine::Raw), Settings::default());
    let mut client = server.connect();
    let value = |key: u64| vec![key as u8; 400_000];
    for key in 0..60 {
        assert_eq!(client.set(&format!("k{key}"), &value(key)), "STORED");
    }
    let mut clients: Vec<_> = (0..6).map(|_| server.connect()).collect();
    for client in &mut clients {
        // Those set first are on flash alone.
        (0..120).for_each(|n| client.send(format!("get k{}\r\n", n % 30).as_bytes()));
    }
    let mut found = 0;
    for client in &mut clients {
        for n in 0..120 {
            let got = client.value(&format!("k{}", n % 30));
            found += u64::from(got.is_some());
            assert!(got.is_none_or(|got| got == value(n % 30)));
        }
    }
    assert!(found > 300, "{found}");
    server.stop();
}
