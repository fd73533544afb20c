//! `prism cache serve` and `prism cache simulate`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use prism_base::Rng;
use prism_flash::DeviceGeometry;
use prism_flashfile::{FlashFile, FlashFileError};
use serde_json::Value;

use crate::common::loop_disk::{LoopDevice, turn};
use crate::common::{Run, folder, prism};

/// A server process, which is killed in the end.
struct Served {
    child: Child,
    errors: BufReader<ChildStderr>,
    address: String,
}

impl Served {
    fn start(device: &Path, more: &[&str]) -> Self {
        let usual = ["--size", "64MiB", "-I", "256k", "--memory", "16MiB"];
        Self::begin(device, &[&usual, more].concat())
    }

    fn begin(device: &Path, options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(["cache", "serve", "-p", "0", "--device"])
            .arg(device)
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        errors.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("prism: listening on ").expect(&line).to_owned();
        Self { child, errors, address }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address);
        for _ in 0..500 {
            if stream.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            stream = TcpStream::connect(&self.address);
        }
        let stream = stream.unwrap();
        stream.set_nodelay(true).unwrap();
        BufReader::new(stream)
    }

    /// What it writes to standard error when it begins to serve, but for its address.
    fn said(&mut self) -> String {
        let mut said = String::new();
        while !said.ends_with(" items\n") {
            assert!(self.errors.read_line(&mut said).unwrap() > 0, "{said}");
        }
        said
    }

    /// As `kill -9` does.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
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

/// The server is killed with SIGKILL at any moment, at every level of the library. What was
/// acknowledged is there afterwards, and nothing that was replaced or deleted.
#[test]
fn random_kills_lose_nothing_and_bring_nothing_back() {
    let folder = folder();
    for (engine, seed) in ["function", "raw", "policy", "original", "ideal"].into_iter().zip(1..) {
        let device = folder.path().join(engine);
        let mut rng = Rng::stream(prism_testkit::seed(seed), "kills");
        let mut model = vec![None; 400];
        for round in 0..4 {
            let mut server = Served::start(&device, &["--engine", engine]);
            let said = server.said();
            assert!(!said.contains("dropped"), "{engine}, round {round}: {said}");
            let mut client = server.connect();
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
                    let command = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
                    assert_eq!(ask(&mut client, command.as_bytes()), "STORED");
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
    let device = folder.path().join("cache");
    let value = |key: u64| format!("{key}-").repeat(5000);
    let server = Served::start(&device, &[]);
    let mut client = server.connect();
    for key in 0..1000 {
        let value = value(key);
        let command = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
        assert_eq!(ask(&mut client, command.as_bytes()), "STORED");
    }
    server.kill();
    let mut bytes = std::fs::read(&device).unwrap();
    let wanted = "3-".repeat(1000);
    let found = bytes.windows(wanted.len()).position(|found| found == wanted.as_bytes());
    // A page that has no other item.
    bytes[found.expect("the value is on flash") + 5000] ^= 1;
    std::fs::write(&device, bytes).unwrap();
    let mut server = Served::start(&device, &[]);
    let said = server.said();
    assert!(said.contains(", 1000 items"), "{said}");
    let mut client = server.connect();
    assert!(get(&mut client, 3).is_none() && get(&mut client, 9) == Some(value(9)));
    let mut line = String::new();
    server.errors.read_line(&mut line).unwrap();
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
    let state = folder.path().join("state");
    let state = state.to_str().unwrap();
    let refused = |more: &[&str], part: &str| {
        let run = prism(&[&["cache", "serve", "-p", "0", "--device", disk.name()], more].concat());
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
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
            let options = [&["--state", state, "-I", "256k", "--memory", "16MiB"], engine_of_new];
            let mut server = Served::begin(Path::new(disk.name()), &options.concat());
            let said = server.said();
            let items = format!("engine {engine}, {} items", round * 300);
            assert!(said.contains(&items), "{items} is not in {said}");
            let mut client = server.connect();
            for key in 0..round * 300 {
                assert_eq!(get(&mut client, key), Some(format!("{key}-").repeat(1000)), "{engine}");
            }
            for key in round * 300..(round + 1) * 300 {
                let value = format!("{key}-").repeat(1000);
                let command = format!("set {key} 0 0 {}\r\n{value}\r\n", value.len());
                assert_eq!(ask(&mut client, command.as_bytes()), "STORED");
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
    let path = Path::new(disk.name());
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
        FlashFile::format(path, geometry(blocks), bad, options()).map(drop).unwrap_err()
    };
    let error = made(40, &[]).to_string();
    assert!(error.contains("the block device has 33554432 bytes, and "), "{error}");
    // Too few blocks for the device's own tables.
    let error = made(4, &[0, 1, 2]);
    assert!(matches!(error, FlashFileError::Format { .. }), "{error}");
    assert!(std::fs::read(path).unwrap()[..1 << 20].iter().all(|&byte| byte == 0));
    // As after a kill between the two steps.
    drop(FlashFile::create(path, geometry(16)).unwrap());
    let state = folder.path().join("state");
    let serve = ["cache", "serve", "-p", "0", "--state", state.to_str().unwrap(), "--device"];
    let run = prism(&[&serve[..], &[disk.name()]].concat());
    assert_eq!(run.code, 2, "{}", run.stderr);
    let erase = format!("erase its beginning (dd if=/dev/zero of={} ", disk.name());
    assert!(run.stderr.contains(&erase), "{}", run.stderr);
    assert!(path.exists() && !state.exists());
}

#[test]
fn sizes_are_those_of_the_device() {
    let folder = folder();
    let device = folder.path().join("cache");
    let device = device.to_str().unwrap();
    let refused = |size: &str, parts: &[&str]| {
        let run = prism(&["cache", "serve", "-p", "0", "--device", device, "--size", size]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        for part in parts {
            assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
        }
    };
    // The number that the message gives is enough, for every engine.
    refused("1000000", &["is too small", "give it 48 MiB or limit items by -I"]);
    for engine in ["function", "raw", "policy", "original", "ideal"] {
        let options = ["--size", "50331648", "--engine", engine];
        let mut server = Served::begin(Path::new(device), &options);
        server.said();
        server.kill();
        if engine != "ideal" {
            std::fs::remove_file(device).unwrap();
            std::fs::remove_file(format!("{device}.cache")).unwrap();
        }
    }
    refused("96MiB", &["--size 96 MiB: ", "was made with 48 MiB", "leave --size away"]);
    refused("1 apple", &["--size"]);
    // The same size again, rounded as it was.
    let mut server = Served::begin(Path::new(device), &["--size", "47MiB"]);
    server.said();
    server.kill();
    std::fs::remove_file(device).unwrap();
    std::fs::remove_file(format!("{device}.cache")).unwrap();
    refused("9TiB", &["--size 9 TiB is too large", "at most 1022 GiB"]);
    assert!(!Path::new(device).exists());
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    let device = folder.path().join("cache");
    let serve = |more: &[&str]| {
        let mut args = vec!["cache", "serve", "--device", device.to_str().unwrap()];
        args.extend_from_slice(more);
        prism(&args)
    };
    let refused = |run: Run, part: &str| {
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains(part), "{part:?} is not in {}", run.stderr);
    };
    refused(serve(&["--size", "8MiB", "-p", "0"]), "--size 8 MiB is too small");
    refused(serve(&["--engine", "magic"]), "engines are raw, function, policy, original, ideal");
    refused(serve(&["-I", "64m"]), "is not a size from 1k to 32m");
    refused(serve(&["--listen", "nowhere:xyz"]), "--listen nowhere:xyz");
    refused(serve(&["-U", "11211"]), "does not answer UDP");
    refused(serve(&["-B", "binary"]), "no other protocol");
    assert!(!device.exists());
    Served::start(&device, &["--engine", "raw"]).kill();
    let other = ["--engine", "function", "--size", "64MiB", "-I", "256k", "-p", "0"];
    refused(serve(&other), "the cache was made with --engine raw");
    // Without --engine it is that of the device.
    let mut served = Served::start(&device, &[]);
    let said = served.said();
    assert!(said.contains("engine raw, 0 items"), "{said}");
    served.kill();
    std::fs::write(&device, b"something else").unwrap();
    refused(serve(&["-p", "0"]), device.to_str().unwrap());
}

#[test]
fn simulations_are_repeatable_and_compare_engines() {
    let args = [
        "cache",
        "simulate",
        "--etc",
        "keys=500000,requests=400000,sets=0.1,zipf=0.9",
        "--size",
        "16MiB,32MiB",
        "--slab",
        "128KiB",
        "--engine",
        "raw,policy,original,stock",
        "--json",
        "-",
    ];
    let run = prism(&args);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(run.stdout, prism(&args).stdout);
    let rows: Value = serde_json::from_str(&run.stdout).unwrap();
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    let hits = |row: usize| rows[row]["hit_ratio"].as_f64().unwrap();
    assert!(hits(0) > hits(1) && hits(4) > hits(0), "{} {} {}", hits(0), hits(1), hits(4));
}

#[test]
fn simulations_have_charts_and_say_what_is_missing() {
    let folder = folder();
    let page = folder.path().join("page.html");
    let etc = |more: &[&str]| {
        let args = ["cache", "simulate", "--etc", "keys=100000,requests=200000,zipf=0.9"];
        prism(&[&args, more].concat())
    };
    let sizes = ["--memory", "256KiB", "--slab", "32KiB", "--size", "4MiB,8MiB,16MiB"];
    let run = etc(&[&sizes[..], &["--html", page.to_str().unwrap()]].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = std::fs::read_to_string(&page).unwrap();
    for part in ["Hit ratio", "Write amplification", "By size", "original"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!run.stdout.contains("By size --"), "charts are on the page");
    // Items longer than a slab are counted in the text as well.
    let path = folder.path().join("trace.csv");
    let path = path.to_str().unwrap();
    std::fs::write(path, "time,key,op,size\n1,a,set,100000\n2,b,set,100000\n3,c,set,50\n").unwrap();
    let run = prism(&["cache", "simulate", path, "--slab", "32KiB", "--size", "4MiB"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let cells = |name: &str| {
        let line = run.stdout.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(run.stdout.contains("too large"), "{}", run.stdout);
    let raw = cells("raw");
    assert_eq!(raw.last().unwrap(), "2", "{raw:?}");
    // Without gets there is no ratio of hits, and without programs no write amplification.
    assert_eq!(raw[3..6], ["-", "-", "-"], "{raw:?}");
    let small = ["--memory", "256KiB", "--engine", "original", "--slab", "32KiB", "--size"];
    let run = etc(&[&small[..], &["1MiB"]].concat());
    assert_eq!(run.code, 2);
    let least = run.stderr.split("at least ").nth(1).and_then(|rest| rest.split(',').next());
    let least = least.expect("the size that is enough").replace(' ', "");
    let run = etc(&[&small[..], &[&least]].concat());
    assert_eq!(run.code, 0, "{least}: {}", run.stderr);
    let run = etc(&["--engine", "raw", "--size", "2TiB"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("--size 2 TiB, engine raw: a cache has less than 1 TiB of flash"),
        "{}",
        run.stderr
    );
    let run = etc(&["--cycles", "0"]);
    assert!(run.code == 2 && run.stderr.contains("--cycles"), "{}", run.stderr);
    let run = prism(&["cache", "simulate"]);
    assert!(run.stderr.contains("--etc keys=") && !run.stderr.contains("sqlite"), "{}", run.stderr);
}

#[test]
fn traces_of_caches_are_read_and_malformed_ones_named() {
    let folder = folder();
    let path = folder.path().join("trace.csv");
    let mut text = "time,key,op,size,ttl\n".to_owned();
    for n in 0..20_000_u64 {
        text.push_str(&format!("{},k{},get,{},0\n", n / 100, n * n % 3001, 100 + n % 3001 % 900));
    }
    std::fs::write(&path, &text).unwrap();
    let name = path.to_str().unwrap();
    let run = prism(&["cache", "simulate", name, "--size", "32MiB", "--slab", "128KiB"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("20000 gets"), "{}", run.stdout);
    std::fs::write(&path, format!("{text}9,k,get\n")).unwrap();
    let run = prism(&["cache", "simulate", name, "--size", "32MiB", "--slab", "128KiB"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("line 20002") && run.stderr.contains("trace.csv"),
        "{}",
        run.stderr
    );
    // Damaged data is the cause, and not the nonsense that is unpacked from it.
    let mut packed = crate::common::gzip(text.as_bytes());
    let middle = packed.len() / 2;
    packed[middle..middle + 64].fill(0x55);
    std::fs::write(&path, packed).unwrap();
    let run = prism(&["cache", "simulate", name, "--size", "32MiB", "--slab", "128KiB"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("gzip") && run.stderr.contains("damaged"), "{}", run.stderr);
    let run = prism(&["cache", "simulate", name, "--size", "32MiB,32MiB"]);
    assert!(run.code == 2 && run.stderr.contains("is given twice"), "{}", run.stderr);
    std::fs::write(&path, &text).unwrap();
    // A drive of so few blocks would have no spare ones.
    let small = ["cache", "simulate", name, "--size", "64MiB", "--engine", "original"];
    assert!(prism(&small).stderr.contains("--size 64 MiB is too small"));
    let run = prism(&["cache", "simulate", name, "--size", "1MiB"]);
    assert!(run.stderr.contains("--size 1 MiB is too small"), "{}", run.stderr);
}

/// `--index` divides the memory between index and buffers.
#[test]
fn the_index_has_its_share_of_the_memory() {
    let folder = folder();
    let device = folder.path().join("device");
    for (more, bytes) in [(&[][..], 8 << 20), (&["--index", "4MiB"], 4 << 20)] {
        let server = Served::start(&device, more);
        let mut stream = server.connect();
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
    let run = prism(&["cache", "serve", "-p", "0", "--memory", "16MiB", "--index", "16MiB"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("--index 16 MiB takes all of --memory"), "{}", run.stderr);
}

/// The benchmark kills a server with many items, and finds all of them again.
#[test]
fn small_items_are_measured() {
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let run = prism(&[
        "bench",
        "cache",
        path,
        "--only",
        "small items",
        "--small-items",
        "100000",
        "--json",
        "-",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let found: Value = serde_json::from_str(&run.stdout).unwrap();
    let goals = found["goals"].as_array().unwrap();
    assert_eq!(goals.len(), 2);
    for goal in goals {
        assert!(goal["value"].as_f64().unwrap() > 0.0);
        let from = goal["from"].as_str().unwrap();
        assert!(["100.00 % kept", "99.9"].iter().any(|part| from.contains(part)), "{goal}");
    }
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 0, "its files are removed");
    let run = prism(&["bench", "cache", path, "--only", "nonsense"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("small items"), "{}", run.stderr);
}
