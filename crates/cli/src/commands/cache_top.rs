//! `prism cache top`: what a running server does, as rates between two looks at its figures.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as ClapArgs;
use prism_base::Nanos;
use prism_host::interrupt::SoftStop;

use crate::failure::Failure;
use crate::output::write_whole;
use crate::quantities;

/// Arguments of `prism cache top`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism cache top
  prism cache top --connect 10.0.0.5:11211 --interval 5s
  prism cache top -s /run/cache.sock --count 1 --interval 10s

Rates are those of the last interval. Without a terminal, or with --count, there is a line for each
interval.")]
pub struct Args {
    /// The address of the server
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:11211")]
    connect: String,
    /// The Unix socket of the server
    #[arg(short = 's', long, value_name = "FILE", conflicts_with = "connect")]
    socket: Option<PathBuf>,
    /// Time between two looks at the server
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "1s")]
    interval: Nanos,
    /// End after N intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

fn interval(text: &str) -> Result<Nanos, String> {
    let time = quantities::nanos(text)?;
    let allowed = Nanos(10_000_000)..=Nanos(86_400_000_000_000);
    if allowed.contains(&time) { Ok(time) } else { Err("give 10ms to 86400s".to_owned()) }
}

/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer: a server of ours needs some KiB.
const ANSWER_MAX: u64 = 1 << 20;
/// How soon a signal ends a wait.
const STEP: Duration = Duration::from_millis(50);

trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

/// A server, and its name for messages.
struct Server {
    name: String,
    stream: BufReader<Box<dyn Connection>>,
}

impl Server {
    fn connect(args: &Args) -> Result<Self, Failure> {
        let option = if args.socket.is_some() { "-s" } else { "--connect" };
        let name = match &args.socket {
            Some(path) => path.display().to_string(),
            None => args.connect.clone(),
        };
        let failed = |error: std::io::Error| {
            let what = format!("cannot connect to {name}: {error}; name the server by {option}");
            Failure::Usage(what)
        };
        let stream: Box<dyn Connection> = match &args.socket {
            Some(path) => {
                let stream = UnixStream::connect(path).map_err(failed)?;
                stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                Box::new(stream)
            }
            None => {
                let mut addresses = args.connect.to_socket_addrs().map_err(failed)?;
                let none = || std::io::Error::other("no such address");
                let address = addresses.next().ok_or_else(none).map_err(failed)?;
                let stream = TcpStream::connect_timeout(&address, PATIENCE).map_err(failed)?;
                stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                Box::new(stream)
            }
        };
        Ok(Self { name, stream: BufReader::new(stream) })
    }

    /// The figures of a command; those that are no numbers are left out.
    fn figures(&mut self, command: &str) -> Result<BTreeMap<String, f64>, Failure> {
        let failed = |what: String| Failure::Usage(format!("{}: {what}", self.name));
        let io = |error: std::io::Error| failed(format!("the server does not answer: {error}"));
        let stream = &mut self.stream;
        stream.get_mut().write_all(format!("{command}\r\n").as_bytes()).map_err(io)?;
        let mut figures = BTreeMap::new();
        let mut answer = stream.take(ANSWER_MAX);
        loop {
            let mut line = String::new();
            let bytes = answer.read_line(&mut line).map_err(io)?;
            let line = line.trim_end();
            if line == "END" {
                return Ok(figures);
            }
            let Some(figure) = line.strip_prefix("STAT ").filter(|_| bytes > 0) else {
                return Err(failed(match line {
                    "" => "the server has closed the connection".to_owned(),
                    "ERROR" => format!("this is no server of prism: it has no `{command}`"),
                    _ => format!("{command} was answered by {line:?}"),
                }));
            };
            let figure = figure.split_once(' ');
            if let Some((name, Ok(value))) = figure.map(|(name, value)| (name, value.parse())) {
                figures.insert(name.to_owned(), value);
            }
        }
    }

    fn look(&mut self) -> Result<Look, Failure> {
        let mut figures = self.figures("stats")?;
        figures.extend(self.figures("stats flash")?);
        Ok(Look { figures, at: Instant::now() })
    }
}

/// What the server has reported at one time.
struct Look {
    figures: BTreeMap<String, f64>,
    at: Instant,
}

/// Commands that are counted. Those of the meta protocol are among them, by what they do, and are
/// not counted again as `cmd_meta`.
const COMMANDS: [&str; 9] = [
    "cmd_get",
    "cmd_set",
    "cmd_touch",
    "delete_hits",
    "delete_misses",
    "incr_hits",
    "incr_misses",
    "decr_hits",
    "decr_misses",
];

/// The difference of two looks.
struct Interval<'a> {
    before: &'a Look,
    after: &'a Look,
}

impl Interval<'_> {
    fn now(&self, name: &str) -> f64 {
        self.after.figures.get(name).copied().unwrap_or(0.0)
    }

    /// How much a counter has grown. One that is smaller was reset, or the server began anew.
    fn growth(&self, names: &[&str]) -> f64 {
        let sum =
            |look: &Look| names.iter().filter_map(|name| look.figures.get(*name)).sum::<f64>();
        let (before, after) = (sum(self.before), sum(self.after));
        if after < before { after } else { after - before }
    }

    fn rate(&self, names: &[&str]) -> f64 {
        let seconds = (self.after.at - self.before.at).as_secs_f64();
        self.growth(names) / seconds.max(1e-9)
    }

    /// A part of the lookups in per cent, if there were any.
    fn share(&self, name: &str) -> String {
        let all = self.growth(&["hits_memory", "hits_flash", "misses"]);
        if all == 0.0 {
            "-".to_owned()
        } else {
            format!("{:.1}", 100.0 * self.growth(&[name]) / all)
        }
    }

    /// Pages programmed and copied per page of items written to flash, if any were.
    fn amplification(&self) -> String {
        let written = self.growth(&["written_item_bytes"]) / self.now("flash_page_bytes");
        let programmed = self.growth(&["flash_pages_programmed", "flash_pages_copied"]);
        if written > 0.0 { format!("{:.2}", programmed / written) } else { "-".to_owned() }
    }

    /// The columns: title and value.
    fn columns(&self) -> [(&'static str, String); 10] {
        let rate = |names: &[&str]| format!("{:.0}", self.rate(names));
        // `gat` is counted as a get and as a touch.
        let requests = self.rate(&COMMANDS) - self.rate(&["gets_with_touch"]);
        [
            ("requests/s", format!("{:.0}", requests.max(0.0))),
            ("memory %", self.share("hits_memory")),
            ("flash %", self.share("hits_flash")),
            ("miss %", self.share("misses")),
            ("WA", self.amplification()),
            ("erases/s", format!("{:.1}", self.rate(&["flash_blocks_erased"]))),
            ("dropped/s", rate(&["cleaning_items_dropped", "index_items_dropped"])),
            ("free slabs", format!("{:.0}", self.now("slabs_free"))),
            ("items", format!("{:.0}", self.now("curr_items"))),
            ("clients", format!("{:.0}", self.now("curr_connections"))),
        ]
    }

    /// A line, under the titles.
    fn line(&self) -> String {
        let cells = self.columns().map(|(title, value)| format!("{value:>0$}", width(title)));
        cells.join(" ") + "\n"
    }

    /// A screen with all that the line has, and what does not fit there.
    fn screen(&self, server: &str) -> String {
        let mut text = format!("{server}, up {:.0} s\n\n", self.now("uptime"));
        for (title, value) in self.columns() {
            text += &format!("{title:<24}{value:>12}\n");
        }
        for (title, name, decimals) in [
            ("WA since the start", "write_amplification", 2),
            ("mean erases of a block", "wear_blocks_mean", 1),
            ("most erases of a block", "wear_blocks_max", 0),
            ("days at this rate", "life_days_at_this_rate", 0),
        ] {
            if let Some(value) = self.after.figures.get(name) {
                text += &format!("{title:<24}{value:>12.decimals$}\n");
            }
        }
        text + "\nCtrl-C ends.\n"
    }
}

/// Characters of a column.
fn width(title: &str) -> usize {
    title.len().max(8)
}

/// `text` in place of what the terminal shows.
fn in_place(text: &str) -> String {
    // To the upper left; each line replaces the old one to its end; what is below goes.
    format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n"))
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] if there is no server, or it does not answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    let stop = SoftStop::begin();
    let mut server = Server::connect(args)?;
    let screen = std::io::stdout().is_terminal() && args.count.is_none();
    let out = Path::new("-");
    let mut before = server.look()?;
    if !screen {
        let titles = Interval { before: &before, after: &before }.columns();
        let titles = titles.map(|(title, _)| format!("{title:>0$}", width(title)));
        write_whole(out, (titles.join(" ") + "\n").as_bytes())?;
    }
    let mut due = before.at;
    for _ in 0..args.count.unwrap_or(u64::MAX) {
        let interval = Duration::from_nanos(args.interval.0);
        // A process that was stopped does not make up for the intervals that it missed.
        due = if due + interval > before.at { due } else { before.at } + interval;
        while !stop.came() && Instant::now() < due {
            std::thread::sleep(STEP.min(due.saturating_duration_since(Instant::now())));
        }
        if stop.came() {
            break;
        }
        let after = server.look()?;
        let interval = Interval { before: &before, after: &after };
        let text = if screen { in_place(&interval.screen(&server.name)) } else { interval.line() };
        write_whole(out, text.as_bytes())?;
        before = after;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(figures: &[(&str, f64)], at: Instant) -> Look {
        Look {
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            at,
        }
    }

    #[test]
    fn rates_are_those_of_the_interval() {
        let at = Instant::now();
        let before = look(
            &[("cmd_get", 1000.0), ("hits_memory", 900.0), ("misses", 100.0), ("cmd_set", 50.0)],
            at,
        );
        let after = look(
            &[
                ("cmd_get", 1400.0),
                ("cmd_set", 30.0),
                // Of these gets 20 were also touches.
                ("cmd_touch", 20.0),
                ("gets_with_touch", 20.0),
                // Gets of the meta protocol, which are among the others.
                ("cmd_meta", 300.0),
                ("hits_memory", 1000.0),
                ("hits_flash", 250.0),
                ("misses", 150.0),
                ("written_item_bytes", 409_600.0),
                ("flash_page_bytes", 4096.0),
                ("flash_pages_programmed", 120.0),
                ("flash_pages_copied", 30.0),
                ("slabs_free", 7.0),
                ("write_amplification", 1.25),
            ],
            at + Duration::from_secs(2),
        );
        let columns = Interval { before: &before, after: &after }.columns();
        let check = |title: &str, expected: &str| {
            let found = columns.iter().find(|(name, _)| *name == title).map(|(_, value)| value);
            assert_eq!(found.map(String::as_str), Some(expected), "{title}");
        };
        check("requests/s", "190");
        check("memory %", "25.0");
        check("flash %", "62.5");
        check("miss %", "12.5");
        check("WA", "1.50");
        check("free slabs", "7");
        check("erases/s", "0.0");
        let screen = Interval { before: &before, after: &after }.screen("x:1");
        assert!(screen.contains("WA since the start              1.25\n"), "{screen}");
        assert!(!screen.contains("most erases"), "{screen}");
        // Nothing happened: no shares, and no division by zero.
        let columns = Interval { before: &after, after: &after }.columns();
        assert_eq!((columns[1].1.as_str(), columns[4].1.as_str()), ("-", "-"));
        // The server was restarted: what it has counted since then.
        let columns = Interval { before: &after, after: &before }.columns();
        assert_eq!(columns[3].1, "10.0");
    }

    #[test]
    fn a_screen_replaces_the_last_one() {
        assert_eq!(in_place("a\nb\n"), "\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J");
    }
}
