//! Limits of `prism cache serve`: connections and memory.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prism_testkit::skipped;

use crate::common::server::Server;
use crate::common::{folder, path, words};

/// A line of the process's status, in KiB.
fn status(server: &Server, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.child.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect(name);
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The line that a client reads, which the server sends on its own if it refuses the client.
fn line(stream: &TcpStream) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    line
}

/// Waits until the server has no other client.
fn wait_until_alone(address: &str) {
    let alone = (0..6000).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut stream = connect(address);
        // A client that is refused cannot always send.
        let _ = stream.write_all(b"stats\r\nquit\r\n");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.contains("STAT curr_connections 1\r\n")
    });
    assert!(alone);
}

const REFUSED: &str = "ERROR Too many open connections\r\n";

#[test]
fn many_connections_are_served_or_refused_and_leave_nothing() {
    let folder = folder();
    let limits = words("-I 256k --size 256MiB -c 64 --memory 16MiB --device");
    let device = path(&folder, "cache");
    let server = Server::start(&[&limits[..], &[&device]].concat());
    let address = &server.address;
    let one = || {
        let mut stream = connect(address);
        // A client that was refused cannot always send.
        let _ = stream.write_all(b"mn\r\n");
        line(&stream)
    };
    let mut warm = 0;
    for number in 0..5000 {
        let answer = one();
        // The end of a client is noticed later than it happens.
        assert!(answer == "MN\r\n" || answer == REFUSED, "{number}: {answer:?}");
        if number == 1000 {
            warm = status(&server, "VmRSS:");
        }
    }
    for _ in 0..5 {
        wait_until_alone(address);
        let mut streams: Vec<TcpStream> = (0..200).map(|_| connect(address)).collect();
        let refused = streams.split_off(64);
        for stream in &mut streams {
            stream.write_all(b"mn\r\n").unwrap();
        }
        // The client that has waited may not be closed yet.
        let mut served = 0;
        for stream in &streams {
            let answer = line(stream);
            assert!(answer == "MN\r\n" || answer == REFUSED, "{answer:?}");
            served += u32::from(answer.starts_with("MN"));
        }
        assert!(served >= 63, "{served}");
        let wait = |stream: &TcpStream| stream.set_read_timeout(Some(Duration::from_millis(200)));
        for stream in &refused {
            wait(stream).unwrap();
            let mut answer = [0; REFUSED.len()];
            // It was refused, unless a place was free again; then it waits for its commands.
            if (&mut &*stream).read_exact(&mut answer).is_ok() {
                assert_eq!(answer, REFUSED.as_bytes());
            }
        }
    }
    let grown = status(&server, "VmRSS:").saturating_sub(warm);
    assert!(grown < 4096, "{grown} KiB more than {warm} KiB");
}

/// CPU time of a process, in ticks of the kernel.
fn cpu_ticks(server: &Server) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// A server that has no file descriptor for a client, and no client whose end would free one,
/// sleeps and tries again: descriptors and memory can also be short elsewhere in the system.
#[test]
fn clients_are_accepted_when_descriptors_are_free_again() {
    use rustix::process::{Pid, Resource, getrlimit, prlimit};
    let mut server = Server::start(&["-v", "--metrics", "0", "--size", "64MiB"]);
    let metrics = server.after("prism: metrics on http://");
    server.after("prism: memory, ");
    let process = Pid::from_raw(server.child.id() as i32);
    // It has opened all that it needs when it serves.
    let mut first = connect(&server.address);
    first.write_all(b"quit\r\n").unwrap();
    assert_eq!(line(&first), "");
    let limit = |most| {
        let mut new = getrlimit(Resource::Nofile);
        new.current = most;
        prlimit(process, Resource::Nofile, new).unwrap();
    };
    limit(Some(3));
    let mut client = connect(&server.address);
    let mut monitor = connect(metrics.strip_suffix("/metrics").unwrap());
    server.after("prism: cannot accept a client");
    let before = cpu_ticks(&server);
    std::thread::sleep(Duration::from_secs(1));
    let ticks = cpu_ticks(&server) - before;
    assert!(ticks < 50, "{ticks} ticks in a second in which there is nothing to do");
    limit(getrlimit(Resource::Nofile).current);
    client.write_all(b"mn\r\n").unwrap();
    assert_eq!(line(&client), "MN\r\n");
    monitor.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(line(&monitor), "HTTP/1.1 200 OK\r\n");
}

/// A server whose device fails says so, and does not end with the code of wrong options, after
/// which the unit would not start it again.
#[test]
fn a_failed_device_is_no_wrong_option() {
    use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
    let folder = folder();
    let device = path(&folder, "cache");
    let options = ["-I", "256k", "--memory", "4MiB", "--size", "64MiB", "--device", &device];
    // Writes beyond the limit of a file's length fail, instead of ending the process.
    let mut server = Server::after_script("trap '' XFSZ", &options);
    assert!(server.next_line().unwrap().ends_with("0 items"));
    let pid = Pid::from_raw(server.child.id() as i32);
    let short = Rlimit { current: Some(4096), maximum: None };
    prlimit(pid, Resource::Fsize, short).unwrap();
    let mut client = connect(&server.address);
    let mut answers = BufReader::new(client.try_clone().unwrap());
    let mut answer = "STORED\r\n".to_owned();
    for number in 0..1000 {
        if answer != "STORED\r\n" {
            break;
        }
        let value = [b'x'; 100_000];
        let command = format!("set {number} 0 0 {}\r\n", value.len());
        client.write_all(&[command.as_bytes(), &value, b"\r\n"].concat()).unwrap();
        answer.clear();
        answers.read_line(&mut answer).unwrap();
    }
    assert!(answer.starts_with("SERVER_ERROR"), "{answer}");
    let line = server.next_line().unwrap();
    assert!(line.contains("the device has failed, no more items are stored"), "{line}");
    kill_process(pid.unwrap(), Signal::TERM).unwrap();
    assert_eq!(server.child.wait().unwrap().code(), Some(1), "{:?}", server.next_line());
}

/// A control group with a limit of memory, which is removed in the end.
struct Group(PathBuf);

impl Group {
    /// A group of either version of control groups; the error says why there is none.
    fn with_limit(bytes: u64) -> Result<Self, String> {
        let name = format!("prism-test-{}", std::process::id());
        let tried =
            [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
        let mut why = String::new();
        for (root, limit) in tried {
            let path = Path::new(root).join(&name);
            if let Err(error) = fs::create_dir(&path) {
                why = format!("{}: {error}", path.display());
                continue;
            }
            let group = Self(path);
            // The file is there if the controller is.
            match fs::OpenOptions::new().write(true).open(group.0.join(limit)) {
                Ok(mut file) => {
                    file.write_all(bytes.to_string().as_bytes()).map_err(|e| e.to_string())?;
                    return Ok(group);
                }
                Err(error) => why = format!("{}/{limit}: {error}", group.0.display()),
            }
        }
        Err(why)
    }

    /// How often the kernel has ended a process of the group for lack of memory.
    fn kills(&self) -> u64 {
        let text = ["memory.events", "memory.oom_control"];
        let text = text.iter().find_map(|name| fs::read_to_string(self.0.join(name)).ok());
        let text = text.expect("a count of kills");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.expect("a count of kills").parse().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // It has no process any more; an empty group does no harm.
        let _ = fs::remove_dir(&self.0);
    }
}

/// What docs/cache.md states: memory for the process besides --memory.
const SLACK: u64 = 96 << 20;

/// A device several times larger than memory is filled more than twice, in a control group that has
/// --memory and a fixed amount.
#[test]
fn memory_is_bounded_as_documented() {
    let group = match Group::with_limit((32 << 20) + SLACK) {
        Ok(group) => group,
        Err(why) => {
            return skipped(&format!("the memory of the cache in a control group: {why}"), "");
        }
    };
    let folder = folder();
    let device = path(&folder, "cache");
    let options = ["-I", "256k", "--size", "256MiB", "--memory", "32MiB", "--device", &device];
    // The process enters the group before it allocates anything.
    let enter = format!("echo $$ >{}", group.0.join("cgroup.procs").display());
    let mut server = Server::after_script(&enter, &options);
    let clients: Vec<_> = (0..4_usize)
        .map(|client| {
            let mut stream = connect(&server.address);
            std::thread::spawn(move || {
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let mut sent = 0;
                for number in 0.. {
                    let len = [1000, 4000, 100_000][number % 3];
                    let mut command = format!("set {client}-{number} 0 0 {len}\r\n").into_bytes();
                    command.resize(command.len() + len, b'x');
                    command.extend_from_slice(b"\r\n");
                    stream.write_all(&command).unwrap();
                    let mut answer = String::new();
                    lines.read_line(&mut answer).unwrap();
                    assert_eq!(answer, "STORED\r\n");
                    sent += len;
                    if sent > 160 << 20 {
                        break;
                    }
                }
            })
        })
        .collect();
    for client in clients {
        client.join().expect("the server answers to the end");
    }
    assert_eq!(group.kills(), 0);
    assert!(server.child.try_wait().unwrap().is_none(), "the server lives");
}
