//! What operators do with `prism cache serve`: memcached's letters, the background, figures.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use prism_testkit::skipped;

use crate::common::loop_disk::{LoopDisk, turn};
use crate::common::server::Server;
use crate::common::{folder, path, prism, refused, signal, words};

/// Sends commands to a Unix socket, and returns what is answered until the server closes.
fn ask(socket: &Path, commands: &str) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.write_all(format!("{commands}quit\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

fn stat(answer: &str, name: &str) -> Option<String> {
    let value = answer.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    value.map(str::to_owned)
}

/// Waits until `done`, or for a minute.
fn wait(done: impl Fn() -> bool) -> bool {
    (0..6000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        done()
    })
}

#[test]
fn letters_that_mean_nothing_are_refused() {
    for (arguments, part) in [
        (&["-M"][..], "always evicts items"),
        (&["-S"], "use -Y FILE"),
        (&["-t", "4"], "run several servers"),
        (&["-t", "0"], "one thread"),
        (&["-o", "ext_path=/x:1G"], "\"ext_path\" is not an option"),
        (&["-o", "idle_timeout=1", "--idle-timeout", "2"], "cannot be used with"),
        (&["-b", "0"], "--backlog"),
        (&["-R", "0"], "--commands-per-turn"),
        (&["-J"], "unexpected argument"),
        (&["--metrics", "nowhere:xyz"], "--metrics nowhere:xyz"),
        (&["-P", "/nowhere/pid"], "-P /nowhere/pid: cannot write"),
    ] {
        refused(&[&["cache", "serve", "-p", "0"], arguments].concat(), &[part]);
    }
    let version = prism(&["cache", "serve", "-V"]);
    assert_eq!((version.code, version.stdout.contains(env!("CARGO_PKG_VERSION"))), (0, true));
    assert!(prism(&["cache", "serve", "-h"]).stdout.contains("-c, --connections"));
}

#[test]
fn files_and_sockets_that_cannot_be_used_are_refused() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let [file, link, socket] = ["file", "link", "none/socket"].map(|name| path(&folder, name));
    std::os::unix::fs::symlink(path(&folder, "away"), &link).unwrap();
    let address = "127.0.0.1:12345";
    for (arguments, parts) in [
        (&["--device", "/dev/null"][..], ["--device /dev/null: ", "neither a regular file"]),
        (&["--device", ""], ["--device : ", "the name is empty"]),
        (&["--device", &link], ["--device ", "which is not there"]),
        (&["--device", &socket], ["--device ", "there is no folder"]),
        (&["--device", &file, "--state", &file], ["--state ", "this is the file of --device"]),
        (&["--memory", "64"], ["--memory 64", "is too small: give at least 1 MiB"]),
        (&["--index", "0"], ["--index 0", "is too small: give at least 1 MiB"]),
        (&["--size", "0"], ["--size 0", "is too small"]),
        (&["-m", "abc"], ["-m", "give a whole number"]),
        (&["-Y", "/dev/zero"], ["-Y /dev/zero: ", "no regular file"]),
        (&["-s", &socket], ["-s ", "make its folder first"]),
        (&["-l", "127.0.0.1", "-p", &port], ["-l 127.0.0.1: ", "give another port"]),
        (&["-p", &port], ["-p ", "end the program that listens there"]),
        (&["-p", "0", "--metrics", &port], ["--metrics ", "end the program that listens there"]),
        (&["--listen", address, "--metrics", "12345"], ["--metrics 12345: ", "names 127.0.0.1"]),
    ] {
        refused(&[&["cache", "serve"], arguments].concat(), &parts);
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the link is there");
}

#[test]
fn a_server_in_the_background_serves_when_the_command_ends() {
    let folder = folder();
    let [socket, pid_file] = ["socket", "pid"].map(|name| folder.path().join(name));
    let arguments = ["-X", "-d", "-P", pid_file.to_str().unwrap(), "-s", socket.to_str().unwrap()];
    let serve = [&["cache", "serve", "--size", "64MiB", "-I", "256k"], &arguments[..]].concat();
    let run = prism(&serve);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let line = format!("prism: listening on unix:{}\n", socket.display());
    assert!(run.stderr.contains(&line), "{}", run.stderr);
    let stats = ask(&socket, "stats\r\n").expect("it serves");
    let dump = ask(&socket, "stats cachedump 1 0\r\n").expect("it answers");
    assert!(dump.contains("CLIENT_ERROR stats cachedump not allowed"), "{dump}");
    let pid = stat(&stats, "pid").unwrap();
    assert_eq!(std::fs::read_to_string(&pid_file).unwrap().trim(), pid);
    // A second one reports why it cannot serve, and ends with the code of the failure.
    refused(&serve, &["cannot listen on", "name another one, or remove it"]);
    signal(pid.parse().unwrap(), "TERM");
    assert!(wait(|| !pid_file.exists() && !socket.exists()), "SIGTERM ends it, without leftovers");
}

#[test]
fn root_gives_up_its_privileges() {
    if !rustix::process::geteuid().is_root() {
        return skipped("prism cache serve -u: the tests do not run as root", "");
    }
    let serve = ["cache", "serve", "-p", "0", "-u", "no-such-user"];
    refused(&serve, &["-u no-such-user: there is no such user"]);
    // The user must reach the program and the folder, and the path of neither may be root's alone.
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let everyone = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), everyone).unwrap();
    let program = folder.path().join("prism");
    // By another process: a child that another test starts now would have a file open for writing
    // that this process copies, and the program could not be started.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_prism")).arg(&program).status();
    assert!(copied.unwrap().success());
    let socket = folder.path().join("socket");
    let mut child = Command::new(&program)
        .args(["cache", "serve", "-u", "daemon", "--size", "64MiB", "-I", "256k", "-s"])
        .arg(&socket)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    assert!(wait(|| ask(&socket, "mn\r\n").is_some()), "it serves");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let ids = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(|id| id.parse::<u32>().unwrap()).collect::<Vec<_>>()
    };
    let user = ids("Uid:")[0];
    assert_ne!(user, 0);
    assert_eq!(ids("Uid:"), [user; 4]);
    assert!(!ids("Gid:").contains(&0) && !ids("Groups:").contains(&0), "{status}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn the_log_names_clients_and_refusals() {
    let mut server = Server::start(&words("-vv -c 1 --size 64MiB -I 256k --metrics 0"));
    let second = server.next_line().unwrap();
    assert!(second.starts_with("prism: metrics on http://127.0.0.1:"), "{second}");
    assert!(server.next_line().unwrap().contains("0 items"));
    let kept = TcpStream::connect(&server.address).unwrap();
    let line = server.next_line().unwrap();
    let number = line.strip_prefix("prism: ").unwrap().split(':').next().unwrap().to_owned();
    let from = kept.local_addr().unwrap();
    assert_eq!(line, format!("prism: {number}: connection from tcp:{from}"));
    let _refused = TcpStream::connect(&server.address).unwrap();
    assert_eq!(server.next_line().unwrap(), "prism: refused a client: 1 are connected");
    drop(kept);
    assert_eq!(server.next_line(), Some(format!("prism: {number}: closed")));
    server.kill();
}

#[test]
fn top_shows_what_a_server_does() {
    let folder = folder();
    let [socket, pid_file] = ["socket", "pid"].map(|name| folder.path().join(name));
    let (socket_name, pid_name) = (socket.to_str().unwrap(), pid_file.to_str().unwrap());
    let small = ["--size", "64MiB", "-I", "256k"];
    let serve = ["cache", "serve", "-d", "-P", pid_name, "-s", socket_name];
    assert_eq!(prism(&[&serve[..], &small].concat()).code, 0);
    let mut top = Command::new(env!("CARGO_BIN_EXE_prism"))
        .args(["cache", "top", "-s", socket_name, "--interval", "500ms"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines().map(Result::unwrap);
    let titles = lines.next().unwrap();
    assert!(titles.starts_with("requests/s memory %  flash %"), "{titles}");
    ask(&socket, &"set k 0 0 1\r\n1\r\nget k\r\nget absent\r\n".repeat(50)).unwrap();
    let cells = |line: &str| {
        words(line).iter().map(|cell| cell.parse::<f64>().unwrap_or(-1.0)).collect::<Vec<_>>()
    };
    let busy = lines.by_ref().take(20).map(|line| cells(&line)).find(|cells| cells[0] > 0.0);
    let busy = busy.expect("a line with requests");
    assert_eq!(busy.len(), 10);
    // Hits in memory and misses, of which an interval may have cut some off.
    assert!(busy[1] > 0.0 && busy[3] > 0.0 && busy[2] == 0.0, "{busy:?}");
    assert!((busy[1] + busy[3] - 100.0).abs() < 0.2, "{busy:?}");
    // SIGINT ends it in an orderly way.
    signal(top.id(), "INT");
    assert_eq!(top.wait().unwrap().code(), Some(0));
    let counted = prism(&["cache", "top", "-s", socket_name, "--count", "2", "--interval", "10ms"]);
    assert_eq!((counted.code, counted.stdout.lines().count()), (0, 3), "{}", counted.stderr);
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    signal(pid.trim().parse().unwrap(), "TERM");
    assert!(wait(|| !socket.exists()));
    let refused =
        |arguments: &[&str], part| refused(&[&["cache", "top"], arguments].concat(), &[part]);
    refused(&["-s", socket_name], "cannot connect to");
    refused(&["--interval", "1ms"], "give 10ms to 86400s");
    refused(&["--interval", "5"], "--interval");
    // Another program that listens there.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let mut stream = other.accept().unwrap().0;
        stream.read_exact(&mut [0; 7]).unwrap();
        stream.write_all(b"ERROR\r\n").unwrap();
    });
    refused(&["--connect", &address], "this is no server of prism");
    answers.join().unwrap();
}

/// A file grows as it is filled, so a disk that is too small for it is found out at the start.
#[test]
fn a_disk_that_is_too_small_is_noticed_at_the_start() {
    let turn = turn();
    let Some(disk) = LoopDisk::with("ext4", &turn) else { return };
    let device = disk.folder().join("cache");
    let options = |size: &'static str| {
        let name = device.to_str().unwrap();
        ["-I", "256k", "--memory", "4MiB", "--device", name, "--size", size]
    };
    // 400 MiB, of which ext4 needs some.
    let serve = [&["cache", "serve", "-p", "0"][..], &options("1GiB")].concat();
    refused(&serve, &["--size 1 GiB: ", " free"]);
    assert!(!device.exists());
    let start = || {
        let mut server = Server::start(&options("256MiB"));
        let said = server.said();
        server.kill();
        said
    };
    let said = start();
    assert!(!said.contains("free"), "{said}");
    // Others have filled the disk since.
    std::fs::write(disk.folder().join("other"), vec![1; 200 << 20]).unwrap();
    let said = start();
    assert!(said.contains("may still grow by") && said.contains("Make room"), "{said}");
}

/// Limits of writes and durability: bad input is refused, and good input is seen in the figures.
#[test]
fn options_of_writes_and_durability_have_their_effect() {
    let folder = folder();
    let (device, socket) = (path(&folder, "device"), folder.path().join("socket"));
    for (arguments, part) in [
        (&["--strict"][..], "--strict needs a file"),
        (&["--max-writes", "50MB"], "\"50MB\" is not a rate"),
        (&["--max-writes", "0MB/s"], "is not a rate"),
        (&["--max-writes", "fast"], "is not a rate"),
        (&["--life", "5y"], "--endurance"),
        (&["--life", "5", "--endurance", "3000"], "\"5\" is no lifetime"),
        (&["--life", "0d", "--endurance", "3000"], "is no lifetime"),
        (&["--life", "5y", "--endurance", "3000", "--max-writes", "1MB/s"], "cannot be used with"),
        (&["--endurance", "0"], "--endurance"),
        (&["--endurance", "many"], "--endurance"),
        (&["--state", "file"], "--state needs a device"),
    ] {
        refused(&[&["cache", "serve", "-p", "0"], arguments].concat(), &[part]);
    }
    // 60 MB in items of 100 kB, and the figures after that.
    let figures = |more: &[&str]| {
        let usual = ["cache", "serve", "--size", "64MiB", "-I", "256k", "--memory", "4MiB", "-s"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_prism"))
            .args(usual)
            .arg(&socket)
            .args(more)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        assert!(wait(|| ask(&socket, "mn\r\n").is_some()), "it serves");
        let value = "x".repeat(100_000);
        let sets: String = (0..20).map(|n| format!("set {n} 0 0 100000\r\n{value}\r\n")).collect();
        for _ in 0..30 {
            let answers = ask(&socket, &sets).unwrap();
            assert_eq!(answers.matches("STORED\r\n").count(), 20, "{more:?}");
        }
        let flash = ask(&socket, "stats flash\r\n").unwrap();
        signal(child.id(), "TERM");
        assert_eq!(child.wait().unwrap().code(), Some(0), "{more:?}");
        flash
    };
    let number = |flash: &str, name: &str| stat(flash, name).unwrap().parse::<f64>().unwrap();
    let free = figures(&[]);
    assert_eq!(number(&free, "admission_rejected"), 0.0);
    assert_eq!(stat(&free, "life_days_at_this_rate"), None);
    let limited = figures(&["--max-writes", "1MB/s"]);
    assert!(number(&limited, "admission_rejected") > 100.0, "{limited}");
    let programmed = |flash: &str| number(flash, "flash_pages_programmed");
    assert!(programmed(&limited) < programmed(&free) / 2.0, "{limited}");
    // A block of 64 MiB that endures one erase lasts for ten years at 0.2 bytes a second.
    let life = figures(&["--life", "10y", "--endurance", "1"]);
    assert!(number(&life, "admission_rejected") > 400.0, "{life}");
    // One that endures very much sets no limit, and lasts longer than that.
    let life = figures(&["--life", "1d", "--endurance", "1000000"]);
    assert_eq!(number(&life, "admission_rejected"), 0.0);
    assert!(number(&life, "life_days_at_this_rate") > 1.0, "{life}");
    let endurance = figures(&["--endurance", "3000", "--device", &device, "--strict"]);
    assert!(number(&endurance, "life_days_at_this_rate") > 0.0, "{endurance}");
    // Each set of one client waits for a commit of its own.
    assert_eq!((number(&endurance, "items_inserted"), number(&free, "commits")), (600.0, 0.0));
    assert!(number(&endurance, "commits") >= 600.0, "{endurance}");
}

/// The unit of systemd names options and a program that there are.
#[test]
fn the_unit_is_valid() {
    let unit = include_str!("../../../../packaging/prism-cache.service");
    let program = "/usr/local/bin/prism";
    assert_eq!(unit.matches(program).count(), 1);
    let options = unit.lines().filter_map(|line| line.split_once("OPTIONS=")).map(|found| found.1);
    let help = prism(&["cache", "serve", "--help"]).stdout;
    for option in options.flat_map(|line| line.trim_end_matches('"').split(' ')) {
        assert!(!option.starts_with("--") || help.contains(option), "{option}");
    }
    let systemd = Command::new("systemd-analyze").arg("--version").output();
    if !systemd.is_ok_and(|output| output.status.success()) {
        return skipped("the unit of the cache: no systemd-analyze", "systemd");
    }
    let folder = folder();
    let path = folder.path().join("prism-cache.service");
    std::fs::write(&path, unit.replace(program, env!("CARGO_BIN_EXE_prism"))).unwrap();
    let verified =
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr);
    // Other units of the machine may have faults of their own.
    assert!(!said.contains("prism-cache"), "{said}");
    assert!(verified.status.success(), "{said}");
}
