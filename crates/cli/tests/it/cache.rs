//! `prism cache serve` and `prism cache simulate`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use prism_base::Rng;
use prism_flash::DeviceGeometry;
use prism_flashfile::{FlashFile, FlashFileError};
use serde_json::Value;

use crate::common::loop_disk::{LoopDevice, turn};
use crate::common::server::Server;
use crate::common::{folder, good, gzip, json, path, prism, refused, words};

/// A small server on this device.
fn start(device: &str, more: &[&str]) -> Server {
    let usual = ["--device", device, "--size", "64MiB", "-I", "256k", "--memory", "16MiB"];
    Server::start(&[&usual, more].concat())
}

fn connect(server: &Server) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(&server.address);
    for _ in 0..500 {
        if stream.is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        stream = TcpStream::connect(&server.address);
    }
    let stream = stream.unwrap();
    stream.set_nodelay(true).unwrap();
    BufReader::new(stream)
}

fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_owned()
}

fn ask(stream: &mut BufReader<TcpStream>, command: &[u8]) -> String {
    stream.get_mut().write_all(command).unwrap();
    line(stream)
}

fn get(stream: &mut BufReader<TcpStream>, key: u64) -> Option<String> {
    let found = ask(stream, format!("get {key}\r\n").as_bytes());
    if found == "END" {
        return None;
    }
    let len = found.rsplit(' ').next().unwrap().parse::<usize>().unwrap();
    let mut value = vec![0; len];
    stream.read_exact(&mut value).unwrap();
    line(stream);
    assert_eq!(line(stream), "END");
    Some(String::from_utf8(value).unwrap())
}

/// Sets an item, which must be stored.
fn set(stream: &mut BufReader<TcpStream>, key: u64, value: &str) {
    let command = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
    assert_eq!(ask(stream, command.as_bytes()), "STORED");
}

/// The server is killed with SIGKILL at any moment, at every level of the library. What was
/// acknowledged is there afterwards, and nothing that was replaced or deleted.
#[test]
fn random_kills_lose_nothing_and_bring_nothing_back() {
    let folder = folder();
    for (engine, seed) in ["function", "raw", "policy", "original", "ideal"].into_iter().zip(1..) {
        let device = path(&folder, engine);
        let mut rng = Rng::stream(prism_testkit::seed(seed), "kills");
        let mut model = vec![None; 400];
        for round in 0..4 {
            let mut server = start(&device, &["--engine", engine]);
            let said = server.said();
            assert!(!said.contains("dropped"), "{engine}, round {round}: {said}");
            let mut client = connect(&server);
            for (key, wanted) in (0..).zip(&model) {
                assert_eq!(get(&mut client, key), *wanted, "{engine}, round {round}, key {key}");
            }
            for step in 0..rng.below(1500) {
                let key = rng.below(400);
                if rng.below(5) == 0 {
                    ask(&mut client, format!("delete {key}\r\n").as_bytes());
                    model[key as usize] = None;
                } else {
                    let value = format!("{round}-{step}-").repeat(rng.below(400) as usize);
                    set(&mut client, key, &value);
                    model[key as usize] = Some(value);
                }
            }
            server.kill();
        }
    }
}

/// The log says that items were damaged on flash; they are misses.
#[test]
fn damaged_items_leave_a_line_in_the_log() {
    let folder = folder();
    let device = path(&folder, "cache");
    let value = |key: u64| format!("{key}-").repeat(5000);
    let server = start(&device, &[]);
    let mut client = connect(&server);
    for key in 0..1000 {
        set(&mut client, key, &value(key));
    }
    server.kill();
    let mut bytes = std::fs::read(&device).unwrap();
    let wanted = "3-".repeat(1000);
    let found = bytes.windows(wanted.len()).position(|found| found == wanted.as_bytes());
    // A page that has no other item.
    bytes[found.expect("the value is on flash") + 5000] ^= 1;
    std::fs::write(&device, bytes).unwrap();
    let mut server = start(&device, &[]);
    let said = server.said();
    assert!(said.contains(", 1000 items"), "{said}");
    let mut client = connect(&server);
    assert!(get(&mut client, 3).is_none() && get(&mut client, 9) == Some(value(9)));
    let line = server.next_line().expect("a line");
    assert!(line.contains("damaged on flash") && line.contains("dropped: 1 "), "{line}");
    server.kill();
}

/// A block device keeps the items of a killed server; its size is that of the device.
#[test]
fn a_block_device_holds_a_cache() {
    let (folder, turn) = (folder(), turn());
    let image = folder.path().join("image");
    let len = 96 << 20;
    // What was there before is not zero, but for the beginning.
    let mut bytes = vec![0xa5_u8; len];
    bytes[4096] = 1;
    std::fs::write(&image, &bytes).unwrap();
    let Some(disk) = LoopDevice::over(&image, "a cache on a block device", &turn) else { return };
    let state = &path(&folder, "state");
    let refused = |more: &[&str], part: &str| {
        refused(&[&["cache", "serve", "-p", "0", "--device", disk.name()], more].concat(), &[part]);
        assert!(std::fs::metadata(disk.name()).is_ok(), "the device file stays");
    };
    refused(&["-I", "256k"], "name a file for the state of the cache by --state");
    refused(&["-I", "256k", "--state", state], "this block device is not empty");
    bytes[..1 << 20].fill(0);
    std::fs::write(disk.name(), &bytes[..1 << 20]).unwrap();
    refused(&["-I", "256k", "--state", state, "--size", "96MiB"], "leave --size away to use all");
    refused(&["-I", "256k", "--state", disk.name()], "this is the file of --device");
    for engine in ["function", "raw", "policy", "original", "ideal"] {
        for round in 0..3_u64 {
            // Engine and size are those of the device.
            let engine_of_new: &[&str] = if round == 0 { &["--engine", engine] } else { &[] };
            let options = ["--device", disk.name(), "--state", state, "-I", "256k"];
            let options = [&options[..], &["--memory", "16MiB"], engine_of_new].concat();
            let mut server = Server::start(&options);
            let said = server.said();
            let items = format!("engine {engine}, {} items", round * 300);
            assert!(said.contains(&items), "{items} is not in {said}");
            let mut client = connect(&server);
            for key in 0..round * 300 {
                assert_eq!(get(&mut client, key), Some(format!("{key}-").repeat(1000)), "{engine}");
            }
            for key in round * 300..(round + 1) * 300 {
                set(&mut client, key, &format!("{key}-").repeat(1000));
            }
            if engine == "function" {
                refused(&["--state", state, "-I", "256k"], "it is in use by process");
            }
            server.kill();
        }
        refused(&["--state", state, "-I", "256k", "--size", "32MiB"], "was made with");
        let other = if engine == "raw" { "policy" } else { "raw" };
        let erase = format!("erase its beginning (dd if=/dev/zero of={}", disk.name());
        refused(&["--state", state, "-I", "256k", "--engine", other], &erase);
        std::fs::write(disk.name(), &bytes[..1 << 20]).unwrap();
        std::fs::remove_file(state).unwrap();
    }
}

/// A device that was not made completely leaves a block device blank, or says how to erase it.
#[test]
fn a_block_device_is_made_completely_or_not_at_all() {
    let (folder, turn) = (folder(), turn());
    let image = folder.path().join("image");
    std::fs::write(&image, vec![0; 32 << 20]).unwrap();
    let Some(disk) = LoopDevice::over(&image, "an incomplete block device", &turn) else { return };
    let device = Path::new(disk.name());
    let geometry = |blocks_per_lun| DeviceGeometry {
        channels: 1,
        luns_per_channel: 1,
        blocks_per_lun,
        pages_per_block: 256,
        page_size: 4096,
        oob_size: 64,
        max_open_blocks: None,
    };
    let options = prism_flash::Options::default;
    let made = |blocks, bad: &[u32]| {
        FlashFile::format(device, geometry(blocks), bad, options()).map(drop).unwrap_err()
    };
    let error = made(40, &[]).to_string();
    assert!(error.contains("the block device has 33554432 bytes, and "), "{error}");
    // Too few blocks for the device's own tables.
    let error = made(4, &[0, 1, 2]);
    assert!(matches!(error, FlashFileError::Format { .. }), "{error}");
    assert!(std::fs::read(device).unwrap()[..1 << 20].iter().all(|&byte| byte == 0));
    // As after a kill between the two steps.
    drop(FlashFile::create(device, geometry(16)).unwrap());
    let state = path(&folder, "state");
    let erase = format!("erase its beginning (dd if=/dev/zero of={} ", disk.name());
    let serve = ["cache", "serve", "-p", "0", "--state", &state, "--device", disk.name()];
    refused(&serve, &[&erase]);
    assert!(device.exists() && !Path::new(&state).exists());
}

#[test]
fn sizes_are_those_of_the_device() {
    let folder = folder();
    let device = &path(&folder, "cache");
    let refused = |size: &str, parts: &[&str]| {
        refused(&["cache", "serve", "-p", "0", "--device", device, "--size", size], parts);
    };
    let serve = |options: &[&str]| {
        let mut server = Server::start(&[&["--device", device], options].concat());
        server.said();
        server.kill();
    };
    let remove = || {
        std::fs::remove_file(device).unwrap();
        std::fs::remove_file(format!("{device}.cache")).unwrap();
    };
    // The number that the message gives is enough, for every engine.
    refused("1000000", &["is too small", "give it 48 MiB or limit items by -I"]);
    for engine in ["function", "raw", "policy", "original", "ideal"] {
        serve(&["--size", "50331648", "--engine", engine]);
        if engine != "ideal" {
            remove();
        }
    }
    refused("96MiB", &["--size 96 MiB: ", "was made with 48 MiB", "leave --size away"]);
    refused("1 apple", &["--size"]);
    // The same size again, rounded as it was.
    serve(&["--size", "47MiB"]);
    remove();
    refused("9TiB", &["--size 9 TiB is too large", "at most 1022 GiB"]);
    assert!(!Path::new(device).exists());
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    let device = path(&folder, "cache");
    let refused = |more: &[&str], part: &str| {
        refused(&[&["cache", "serve", "--device", &device], more].concat(), &[part]);
    };
    refused(&["--size", "8MiB", "-p", "0"], "--size 8 MiB is too small");
    refused(&["--engine", "magic"], "engines are raw, function, policy, original, ideal");
    refused(&["-I", "64m"], "is not a size from 1k to 32m");
    refused(&["--listen", "nowhere:xyz"], "--listen nowhere:xyz");
    refused(&["-U", "11211"], "does not answer UDP");
    refused(&["-B", "binary"], "no other protocol");
    assert!(!Path::new(&device).exists());
    start(&device, &["--engine", "raw"]).kill();
    let other = ["--engine", "function", "--size", "64MiB", "-I", "256k", "-p", "0"];
    refused(&other, "the cache was made with --engine raw");
    // Without --engine it is that of the device.
    let mut served = start(&device, &[]);
    let said = served.said();
    assert!(said.contains("engine raw, 0 items"), "{said}");
    served.kill();
    std::fs::write(&device, b"something else").unwrap();
    refused(&["-p", "0"], &device);
}

#[test]
fn simulations_are_repeatable_and_compare_engines() {
    let args = words(
        "cache simulate --etc keys=500000,requests=400000,sets=0.1,zipf=0.9 --size 16MiB,32MiB \
         --slab 128KiB --engine raw,policy,original,stock --json -",
    );
    let text = good(&args);
    assert_eq!(text, good(&args));
    let rows: Value = serde_json::from_str(&text).unwrap();
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let hits = |row: usize| rows[row]["hit_ratio"].as_f64().unwrap();
    assert!(hits(0) > hits(1) && hits(4) > hits(0), "{} {} {}", hits(0), hits(1), hits(4));
}

#[test]
fn simulations_have_charts_and_say_what_is_missing() {
    let folder = folder();
    let page = path(&folder, "page.html");
    let etc = |more: &[&str]| {
        let args = ["cache", "simulate", "--etc", "keys=100000,requests=200000,zipf=0.9"];
        prism(&[&args, more].concat())
    };
    let sizes = ["--memory", "256KiB", "--slab", "32KiB", "--size", "4MiB,8MiB,16MiB"];
    let shown = etc(&[&sizes[..], &["--html", &page]].concat()).good();
    let page = std::fs::read_to_string(&page).unwrap();
    for part in ["Hit ratio", "Write amplification", "By size", "original"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!shown.contains("By size --"), "charts are on the page");
    // Items longer than a slab are counted in the text as well.
    let trace = &path(&folder, "trace.csv");
    std::fs::write(trace, "time,key,op,size\n1,a,set,100000\n2,b,set,100000\n3,c,set,50\n")
        .unwrap();
    let shown = good(&["cache", "simulate", trace, "--slab", "32KiB", "--size", "4MiB"]);
    assert!(shown.contains("too large"), "{shown}");
    let raw = shown.lines().find(|line| line.trim_start().starts_with("raw")).unwrap();
    let raw = words(raw);
    assert_eq!(raw.last(), Some(&"2"), "{raw:?}");
    // Without gets there is no ratio of hits, and without programs no write amplification.
    assert_eq!(raw[3..6], ["-", "-", "-"], "{raw:?}");
    let small = ["--memory", "256KiB", "--engine", "original", "--slab", "32KiB", "--size"];
    let said = etc(&[&small[..], &["1MiB"]].concat()).refused(&[]);
    let least = said.split("at least ").nth(1).and_then(|rest| rest.split(',').next());
    let least = least.expect("the size that is enough").replace(' ', "");
    etc(&[&small[..], &[&least]].concat()).good();
    etc(&["--engine", "raw", "--size", "2TiB"])
        .refused(&["--size 2 TiB, engine raw: a cache has less than 1 TiB of flash"]);
    etc(&["--cycles", "0"]).refused(&["--cycles"]);
    let run = prism(&["cache", "simulate"]);
    assert!(run.stderr.contains("--etc keys=") && !run.stderr.contains("sqlite"), "{}", run.stderr);
}

#[test]
fn traces_of_caches_are_read_and_malformed_ones_named() {
    let folder = folder();
    let trace = path(&folder, "trace.csv");
    let mut text = "time,key,op,size,ttl\n".to_owned();
    for n in 0..20_000_u64 {
        text.push_str(&format!("{},k{},get,{},0\n", n / 100, n * n % 3001, 100 + n % 3001 % 900));
    }
    let simulate = |content: &[u8], more: &[&str]| {
        std::fs::write(&trace, content).unwrap();
        prism(&[&["cache", "simulate", &trace, "--size"], more].concat())
    };
    let usual = ["32MiB", "--slab", "128KiB"];
    let shown = simulate(text.as_bytes(), &usual).good();
    assert!(shown.contains("20000 gets"), "{shown}");
    let longer = format!("{text}9,k,get\n");
    simulate(longer.as_bytes(), &usual).refused(&["line 20002", "trace.csv"]);
    // Damaged data is the cause, and not the nonsense that is unpacked from it.
    let mut packed = gzip(text.as_bytes());
    let middle = packed.len() / 2;
    packed[middle..middle + 64].fill(0x55);
    simulate(&packed, &usual).refused(&["gzip", "damaged"]);
    // Options are refused before the trace is read.
    simulate(&packed, &["32MiB,32MiB"]).refused(&["is given twice"]);
    let refused = |more: &[&str], part: &str| simulate(text.as_bytes(), more).refused(&[part]);
    // A drive of so few blocks would have no spare ones.
    refused(&["64MiB", "--engine", "original"], "--size 64 MiB is too small");
    refused(&["1MiB"], "--size 1 MiB is too small");
}

/// `--index` divides the memory between index and buffers.
#[test]
fn the_index_has_its_share_of_the_memory() {
    let folder = folder();
    let device = path(&folder, "device");
    for (more, bytes) in [(&[][..], 8 << 20), (&["--index", "4MiB"], 4 << 20)] {
        let server = start(&device, more);
        let mut stream = connect(&server);
        stream.get_mut().write_all(b"stats flash\r\n").unwrap();
        let mut stats = Vec::new();
        while stats.last().is_none_or(|line| line != "END") {
            stats.push(line(&mut stream));
            assert_ne!(stats.last().unwrap(), "", "the server has closed");
        }
        let index = stats.iter().find_map(|line| line.strip_prefix("STAT index_bytes "));
        assert_eq!(index.unwrap().trim().parse::<u64>().unwrap(), bytes);
        server.kill();
    }
    let whole = words("cache serve -p 0 --memory 16MiB --index 16MiB");
    refused(&whole, &["--index 16 MiB takes all of --memory"]);
}

/// The benchmark kills a server with many items, and finds all of them again.
#[test]
fn small_items_are_measured() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let bench = |only| ["bench", "cache", path, "--only", only];
    let small = ["--small-items", "100000", "--json", "-"];
    let found = json(&[&bench("small items")[..], &small].concat());
    let goals = found["goals"].as_array().unwrap();
    assert_eq!(goals.len(), 2);
    for goal in goals {
        assert!(goal["value"].as_f64().unwrap() > 0.0);
        let from = goal["from"].as_str().unwrap();
        assert!(["100.00 % kept", "99.9"].iter().any(|part| from.contains(part)), "{goal}");
    }
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 0, "its files are removed");
    refused(&bench("nonsense"), &["small items"]);
}
