//! `prism cache serve`: a memcached server on flash.

mod daemon;
mod letters;
mod logins;
mod sockets;

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::{Bytes, Named};
use prism_cache::cache::Durability;
use prism_cache::items::Items;
use prism_cache::protocol::{Settings, Shared};
use prism_cacheserver::{Engine, Listener, OpenOptions, Server, WriteLimit};
use prism_host::interrupt::SoftStop;

use crate::failure::Failure;
use crate::quantities;
use daemon::{PidFile, Role};
pub use letters::instead;
use letters::{Extended, extended, threads};

/// Arguments of `prism cache serve`.
#[derive(Clone, Debug, ClapArgs)]
#[command(
    version,
    after_help = "Examples:
  prism cache serve --device cache.prism --size 8GiB --memory 512MiB
  prism cache serve --device memory --size 256MiB -s /run/cache.sock
  prism cache serve --device /data/cache.prism --listen 10.0.0.5:11211 --engine raw
  prism cache serve -d -P /run/cache.pid -u cache -m 512 -c 4096 -o idle_timeout=60

The content of a file is there after a restart, also after kill -9. FILE.cache, next to the file,
holds what belongs to it. Letters mean what they mean for memcached."
)]
pub struct Args {
    /// The device: a file, which is made if it is not there, a block device, or `memory`
    #[arg(long, value_name = "FILE|memory", default_value = "memory")]
    device: String,
    /// The file for what belongs to the device, which a block device needs [default: FILE.cache]
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Bytes of a new device; an existing one keeps its size [default: 1GiB, or all of a block
    /// device]
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes_or_number)]
    size: Option<Bytes>,
    /// The level of the flash library that a new cache uses; an existing one keeps its own
    /// [default: function]
    #[arg(long, value_name = "raw|function|policy|original|ideal", value_parser = engine)]
    engine: Option<Engine>,
    /// Bytes of memory for the index (16 an item, and a twentieth) and for buffers
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes_or_number)]
    #[arg(default_value = "64MiB")]
    memory: Bytes,
    /// Bytes of it for the index; without this, half. Many small items need more
    #[arg(long, value_name = "SIZE", value_parser = quantities::bytes_or_number)]
    index: Option<Bytes>,
    /// As --memory, in MiB
    #[arg(short = 'm', value_name = "MIB", conflicts_with = "memory")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    megabytes: Option<u64>,
    /// Listen on this address; repeat it for several. Without it, on the loopback interface
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["listen_letter", "socket"])]
    listen: Vec<String>,
    /// As --listen, with the port of -p; several addresses are separated by commas
    #[arg(short = 'l', value_name = "ADDRESS", id = "listen_letter")]
    address: Option<String>,
    /// The TCP port; 0 for a free one, which is printed
    #[arg(short = 'p', long, value_name = "N", default_value_t = 11211)]
    port: u16,
    /// Listen on a Unix socket, and not on TCP
    #[arg(short = 's', long, value_name = "FILE")]
    socket: Option<PathBuf>,
    /// The permissions of the Unix socket, in octal digits
    #[arg(short = 'a', long, value_name = "MODE", default_value = "700", value_parser = octal)]
    socket_mode: u32,
    /// Most connections at once
    #[arg(short = 'c', long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    connections: u32,
    /// Connections that may wait to be accepted
    #[arg(short = 'b', long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    backlog: u32,
    /// Commands of a connection that are executed before other connections have their turn
    #[arg(short = 'R', long, value_name = "N", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    commands_per_turn: u32,
    /// Answer GET /metrics of Prometheus on this address; a port alone is one of the loopback
    /// interface
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<String>,
    /// The longest item: a number of bytes, or with k or m
    #[arg(short = 'I', long, value_name = "SIZE", default_value = "1m", value_parser = item_size)]
    max_item_size: u64,
    /// Refuse flush_all
    #[arg(short = 'F', long)]
    disable_flush_all: bool,
    /// Refuse stats cachedump
    #[arg(short = 'X', long)]
    disable_dumping: bool,
    /// Accept the command shutdown
    #[arg(short = 'A', long)]
    enable_shutdown: bool,
    /// Clients have to log in with a line user:password of this file
    #[arg(short = 'Y', long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Close connections that were idle for this many seconds; 0 for never
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    idle_timeout: u32,
    /// The UDP port: there is none, so only 0
    #[arg(short = 'U', value_name = "0", value_parser = no_udp)]
    udp: Option<u16>,
    /// The protocol: ascii, or auto, which means the same; there is no binary one
    #[arg(short = 'B', value_name = "ascii|auto", value_parser = protocol)]
    protocol: Option<&'static str>,
    /// Erases that a block of the device endures: `stats flash` then reports how long it lasts
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    endurance: Option<u32>,
    /// Acknowledge a change only when it survives a loss of power. Without it, a loss of power
    /// loses what was set in the last seconds
    #[arg(long)]
    strict: bool,
    /// Program at most so many bytes of flash a second, on average. What exceeds it is not kept:
    /// some sets, chosen at random, are answered and dropped
    #[arg(long, value_name = "50MB/s", value_parser = Bytes::parse_rate)]
    max_writes: Option<Bytes>,
    /// As --max-writes, at the rate at which the flash lasts for this time from now on
    #[arg(long, value_name = "5y", value_parser = quantities::life)]
    #[arg(requires = "endurance", conflicts_with = "max_writes")]
    life: Option<std::time::Duration>,
    /// Memcached's options by name: idle_timeout=SECONDS, as --idle-timeout; maxconns_fast, which
    /// is always so
    #[arg(short = 'o', value_name = "OPTIONS", value_parser = extended)]
    #[arg(conflicts_with = "idle_timeout")]
    extended: Option<Extended>,
    /// Threads that serve: there is one, so only 1
    #[arg(short = 't', value_name = "1", value_parser = threads)]
    threads: Option<u32>,
    /// Write errors to standard error; given twice, also the coming and going of clients
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    verbose: u8,
    /// Serve in the background; this command ends when clients can connect
    #[arg(short = 'd', long)]
    daemon: bool,
    /// Write the number of the process to this file
    #[arg(short = 'P', long, value_name = "FILE")]
    pid_file: Option<PathBuf>,
    /// Run as this user, who opens also files and sockets; for root only, ignored for others
    #[arg(short = 'u', long, value_name = "NAME")]
    user: Option<String>,
    /// The process in the background, which `-d` starts
    #[arg(long, hide = true, requires = "daemon")]
    in_background: bool,
    /// Accept the command debugtime, which sets the server's clock; for tests
    #[arg(long, hide = true)]
    debug_time: bool,
}

fn engine(text: &str) -> Result<Engine, String> {
    Engine::from_name(text).ok_or_else(|| format!("engines are {}", Engine::names()))
}

fn no_udp(text: &str) -> Result<u16, String> {
    match text {
        "0" => Ok(0),
        _ => Err("the cache does not answer UDP; leave the option away, or give 0".to_owned()),
    }
}

fn protocol(text: &str) -> Result<&'static str, String> {
    match text {
        "ascii" => Ok("ascii"),
        "auto" => Ok("auto-negotiate"),
        _ => Err(format!("{text:?} is not ascii or auto; the cache has no other protocol")),
    }
}

fn octal(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    mode.ok_or_else(|| format!("{text:?} are no permissions; give octal digits, such as 770"))
}

fn item_size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1 << 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    let size = digits.parse::<u64>().ok().and_then(|size| size.checked_mul(unit));
    let size = size.filter(|size| (1 << 10..=32 << 20).contains(size));
    size.ok_or_else(|| format!("{text:?} is not a size from 1k to 32m"))
}

impl Args {
    fn write_limit(&self) -> Option<WriteLimit> {
        let life = self.life.zip(self.endurance);
        let life = life.map(|(time, endurance)| WriteLimit::Life { time, endurance });
        self.max_writes.map(WriteLimit::Rate).or(life)
    }

    fn memory_bytes(&self) -> Bytes {
        self.megabytes.map_or(self.memory, |mib| Bytes(mib << 20))
    }

    /// Refuses options that do not fit each other.
    fn check(&self) -> Result<(), Failure> {
        if self.strict && self.device == "memory" {
            let what =
                "--strict needs a file: --device memory survives nothing; give --device FILE";
            return Err(Failure::Usage(what.to_owned()));
        }
        if self.state.is_some() && self.device == "memory" {
            let what = "--state needs a device that outlives the process: give --device FILE";
            return Err(Failure::Usage(what.to_owned()));
        }
        let memory = self.memory_bytes();
        let least = Bytes(1 << 20);
        for (option, given) in [("--memory", Some(memory)), ("--index", self.index)] {
            if let Some(given) = given.filter(|&given| given < least) {
                let what = format!(
                    "{option} {given} is too small: give at least {least}; a number without a unit \
                     is one of bytes"
                );
                return Err(Failure::Usage(what));
            }
        }
        if let Some(index) = self.index.filter(|&index| index >= memory) {
            let what =
                format!("--index {index} takes all of --memory {memory}; buffers need some, too");
            return Err(Failure::Usage(what));
        }
        Ok(())
    }

    fn settings(&self) -> Result<Settings, Failure> {
        Ok(Settings {
            item_max: self.max_item_size as usize,
            flush_enabled: !self.disable_flush_all,
            dump_enabled: !self.disable_dumping,
            shutdown_enabled: self.enable_shutdown,
            auth: self.auth_file.as_deref().map(logins::read).transpose()?,
            debug: self.debug_time,
            maxconns: self.connections,
            verbosity: self.verbose.into(),
            idle_timeout: self.extended.and_then(|o| o.idle_timeout).unwrap_or(self.idle_timeout),
            commands_per_turn: self.commands_per_turn,
            backlog: self.backlog,
            memory_bytes: self.memory_bytes().0,
            port: self.port,
            socket: self.socket.as_ref().map(|path| path.display().to_string()),
            pid: std::process::id(),
            binding_protocol: self.protocol.unwrap_or("auto-negotiate"),
        })
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`].
pub fn run(args: &Args) -> Result<(), Failure> {
    if daemon::begin(args)? == Role::Done {
        return Ok(());
    }
    serve(args)
}

fn serve(args: &Args) -> Result<(), Failure> {
    let settings = args.settings()?;
    let (listeners, metrics) = sockets::open(args)?;
    args.check()?;
    let memory = args.memory_bytes();
    let durability = if args.strict { Durability::PowerLoss } else { Durability::Crash };
    let device = (args.device != "memory").then(|| PathBuf::from(&args.device));
    let options = OpenOptions {
        device,
        state: args.state.clone(),
        size: args.size,
        engine: args.engine,
        memory,
        index: args.index,
        item_max: args.max_item_size,
        durability,
        writes: args.write_limit(),
        hash_seed: None,
    };
    let stop = SoftStop::begin();
    let opened = options.open().map_err(Failure::usage)?;
    let mut out = std::io::stderr();
    for listener in &listeners {
        let address = listener.address().map_or_else(|| listener.name(), |at| at.to_string());
        // A failure to print is no reason not to serve.
        let _ = writeln!(out, "prism: listening on {address}");
    }
    for address in metrics.iter().filter_map(Listener::address) {
        let _ = writeln!(out, "prism: metrics on http://{address}/metrics");
    }
    for note in &opened.notes {
        let _ = writeln!(out, "prism: {note}");
    }
    let _ = writeln!(
        out,
        "prism: {}, engine {}, {} items",
        args.device,
        opened.engine.name(),
        opened.cache.len()
    );
    let shared = Shared::new(settings, prism_cacheserver::open::unix_now());
    let mut server = Server::new(opened, shared, listeners)
        .map_err(Failure::usage)?
        .with_endurance(args.endurance)
        .with_metrics(metrics);
    let _pid_file = args.pid_file.as_deref().map(PidFile::write).transpose()?;
    daemon::ready(args)?;
    // No option is wrong: a unit of systemd starts the server again.
    server.run(&|| stop.came()).map_err(|error| Failure::Finding(error.to_string()))
}
