//! The one door for bytes: a [`Reader`] turns the bytes of any known format into
//! records in the order of their issue times.

use crate::blkparse::Blkparse;
use crate::blktrace::Blktrace;
use crate::capabilities::Capabilities;
use crate::data_sets::{self, Records};
use crate::error::TraceError;
use crate::event::{Intake, OVERLONG};
use crate::formats::line_parser;
use crate::lines::Lines;
use crate::nvme::LogicalBlock;
use crate::pair::Totals;
use crate::record::Record;
use crate::sink::{LineParser, Sink};
use crate::skips::Skips;
use crate::symbols::Symbols;
use crate::{ftrace, perf, wiscsee};

/// Lines after which a reader of independent lines hands out what is in order.
const DRAIN_LINES: u64 = 4096;

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ftrace text and `trace-cmd report`.
    Ftrace,
    /// `perf script`.
    PerfScript,
    /// blkparse text, default form or a given `-f` string.
    Blkparse,
    /// blktrace binary, version 7 or 8, either byte order.
    Blktrace,
    /// fio iolog, version 2 or 3.
    FioIolog,
    /// MSR Cambridge CSV.
    Msr,
    /// Alibaba block traces CSV.
    Alibaba,
    /// Tencent CBS CSV.
    Tencent,
    /// MQSim ASCII.
    Mqsim,
    /// SYSTOR '17 CSV.
    Systor17,
    /// K5cloud CSV.
    K5cloud,
    /// SPC traces, as of the UMass repository.
    Spc,
    /// DiskSim ASCII.
    Disksim,
    /// SSDsim ASCII, which looks as MQSim does.
    Ssdsim,
    /// CloudPhysics, binary, version 1 or 2.
    Vscsi,
    /// Florida International University.
    Fiu,
    /// MiDAS, with TRIM and streams.
    Midas,
    /// Baleen's traces of Tectonic.
    Baleen,
    /// Thesios CSV.
    Thesios,
    /// Block events of cacheMon's io-tracer.
    IoTracer,
    /// libCacheSim's oracleGeneral, binary.
    OracleGeneral,
    /// libCacheSim's lcs, binary.
    Lcs,
    /// biosnoop of bcc, in Python or of libbpf-tools.
    Biosnoop,
    /// Disk events of Windows as CSV, of xperf and MSPS.
    Etw,
    /// Events for the simulator of WiscSee.
    Wiscsee,
    /// Any text described by a TOML map.
    Map,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 26] = [
        Self::Ftrace,
        Self::PerfScript,
        Self::Blkparse,
        Self::Blktrace,
        Self::FioIolog,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Mqsim,
        Self::Systor17,
        Self::K5cloud,
        Self::Spc,
        Self::Disksim,
        Self::Ssdsim,
        Self::Vscsi,
        Self::Fiu,
        Self::Midas,
        Self::Baleen,
        Self::Thesios,
        Self::IoTracer,
        Self::OracleGeneral,
        Self::Lcs,
        Self::Biosnoop,
        Self::Etw,
        Self::Wiscsee,
        Self::Map,
    ];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ftrace => "ftrace",
            Self::PerfScript => "perf-script",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::FioIolog => "fio-iolog",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Mqsim => "mqsim",
            Self::Systor17 => "systor17",
            Self::K5cloud => "k5cloud",
            Self::Spc => "spc",
            Self::Disksim => "disksim",
            Self::Ssdsim => "ssdsim",
            Self::Vscsi => "vscsi",
            Self::Fiu => "fiu",
            Self::Midas => "midas",
            Self::Baleen => "baleen",
            Self::Thesios => "thesios",
            Self::IoTracer => "io-tracer",
            Self::OracleGeneral => "oracle-general",
            Self::Lcs => "lcs",
            Self::Biosnoop => "biosnoop",
            Self::Etw => "etw",
            Self::Wiscsee => "wiscsee",
            Self::Map => "map",
        }
    }

    /// Whether several files of it can follow one another as one trace: not where a file
    /// has to end with a whole record.
    #[must_use]
    pub fn joins_files(self) -> bool {
        !matches!(self, Self::Vscsi | Self::OracleGeneral | Self::Lcs)
    }

    /// The format called `name`, as [`Format::name`] prints it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// Which event of an event format counts as the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountFrom {
    /// The issue to the device (`D`, `block_rq_issue`), the usual one.
    Issue,
    /// The entry into the block layer (`Q`, `block_bio_queue`), for stacked devices that
    /// have no issue events.
    Queue,
    /// The command of the NVMe driver (`nvme_setup_cmd`), for traces without block events.
    Nvme {
        /// Size of a logical block, which no event tells.
        block: LogicalBlock,
    },
}

/// How to read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The format.
    pub format: Format,
    /// The `-f` string of blkparse, if one was used.
    pub blkparse_format: Option<String>,
    /// The text of the TOML map, for [`Format::Map`].
    pub map_toml: Option<String>,
    /// Which event is the request.
    pub count_from: CountFrom,
}

/// A phase of the experiment, between two markers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Its name.
    pub name: String,
    /// Where it starts (ns since trace start).
    pub start_ns: i64,
    /// Where the next one, or the trace, ends it.
    pub end_ns: i64,
}

/// What is known once everything is read.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Lines (or binary records) read.
    pub lines: u64,
    /// What the source could tell, as recorded: a format that has completions but of
    /// which none was in the trace says `completion: false`.
    pub capabilities: Capabilities,
    /// Lines that were no request.
    pub skips: Skips,
    /// Phases, in order.
    pub phases: Vec<PhaseSpan>,
    /// There was no issue event but there were queue events: read again with
    /// [`CountFrom::Queue`].
    pub only_queue_events: bool,
    /// There were no block events but commands of the NVMe driver: read again with
    /// [`CountFrom::Nvme`].
    pub only_nvme_commands: bool,
    /// Requests whose completion was not found although the source has completions.
    pub unpaired: u64,
}

/// Reads one trace, which may consist of several inputs (one file a processor).
pub struct Reader {
    format: Format,
    kind: Kind,
    has_bytes: bool,
    /// The one input of a format that has no more than one has ended.
    text_ended: bool,
}

enum Kind {
    Events { lines: Lines, parser: EventParser, intake: Box<Intake> },
    Binary { blktrace: Blktrace, intake: Box<Intake> },
    Lines { lines: Lines, parser: Box<dyn LineParser>, sink: Sink },
    Records(Box<Records>),
}

/// The parsers of text that consists of events.
enum EventParser {
    Ftrace,
    Perf,
    Wiscsee,
    Blkparse(Blkparse),
}

impl EventParser {
    #[inline]
    fn line(&mut self, line: &[u8], number: u64, intake: &mut Intake) -> Result<(), TraceError> {
        match self {
            Self::Ftrace => ftrace::line(line, number, intake),
            Self::Perf => perf::line(line, number, intake),
            Self::Wiscsee => wiscsee::line(line, number, intake),
            Self::Blkparse(blkparse) => blkparse.line(line, number, intake),
        }
    }
}

impl Reader {
    /// A reader for `inputs` inputs (1 for all but blktrace).
    ///
    /// # Errors
    /// [`TraceError::FormatString`] or [`TraceError::Bad`] if the `-f` string or the map
    /// make no sense.
    ///
    /// # Panics
    /// If there is no input, or more than one of a format other than blktrace.
    pub fn new(options: ReaderOptions, inputs: usize) -> Result<Self, TraceError> {
        let format = options.format;
        assert!(inputs == 1 || format == Format::Blktrace && inputs > 0, "{inputs} inputs");
        let events = |parser| Kind::Events {
            lines: Lines::default(),
            parser,
            intake: Box::new(Intake::new(options.count_from)),
        };
        let kind = match format {
            Format::Ftrace => events(EventParser::Ftrace),
            Format::PerfScript => events(EventParser::Perf),
            Format::Wiscsee => events(EventParser::Wiscsee),
            Format::Blkparse => {
                let blkparse = Blkparse::new(options.blkparse_format.as_deref())?;
                events(EventParser::Blkparse(blkparse))
            }
            Format::Blktrace => Kind::Binary {
                blktrace: Blktrace::new(inputs),
                intake: Box::new(Intake::new(options.count_from)),
            },
            _ => match data_sets::records(format) {
                Some(records) => Kind::Records(Box::new(records)),
                None => {
                    let parser = line_parser(&options)?;
                    let sink = Sink::new(parser.disorder_ns());
                    Kind::Lines { lines: Lines::default(), parser, sink }
                }
            },
        };
        Ok(Self { format, kind, has_bytes: false, text_ended: false })
    }

    /// The input whose bytes are wanted next; `None` once all have ended.
    #[must_use]
    pub fn wants(&self) -> Option<usize> {
        match &self.kind {
            Kind::Binary { blktrace, .. } => blktrace.wants(),
            _ => (!self.text_ended).then_some(0),
        }
    }

    /// Takes the next bytes of `input`; pieces may end anywhere, also within a line.
    ///
    /// # Errors
    /// [`TraceError`]
    ///
    /// # Panics
    /// If the input has ended or was never there.
    pub fn feed(
        &mut self,
        input: usize,
        bytes: &[u8],
        out: &mut Vec<Record>,
    ) -> Result<(), TraceError> {
        self.has_bytes |= !bytes.is_empty();
        match &mut self.kind {
            Kind::Events { lines, parser, intake } => {
                assert!(input == 0 && !self.text_ended, "input {input} is not open");
                let result = lines.feed(bytes, |line, number| match line {
                    Some(line) => parser.line(line, number, intake),
                    None => {
                        intake.skip(OVERLONG, number);
                        Ok(())
                    }
                });
                intake.drain(out);
                result
            }
            Kind::Binary { blktrace, intake } => {
                let result = blktrace.feed(input, bytes, intake);
                intake.drain(out);
                result
            }
            Kind::Lines { lines, parser, sink } => {
                assert!(input == 0 && !self.text_ended, "input {input} is not open");
                lines.feed(bytes, |line, number| {
                    one_line(parser.as_mut(), sink, line, number)?;
                    if number % DRAIN_LINES == 0 {
                        sink.drain(false, out);
                    }
                    Ok(())
                })?;
                sink.drain(false, out);
                Ok(())
            }
            Kind::Records(records) => {
                assert!(input == 0 && !self.text_ended, "input {input} is not open");
                records.feed(bytes, out)
            }
        }
    }

    /// Says that `input` has no more bytes.
    ///
    /// # Errors
    /// [`TraceError`]
    pub fn end_of_input(&mut self, input: usize, out: &mut Vec<Record>) -> Result<(), TraceError> {
        match &mut self.kind {
            Kind::Events { lines, parser, intake } => {
                self.text_ended = true;
                lines.end(|line, number| match line {
                    Some(line) => parser.line(line, number, intake),
                    None => {
                        intake.skip(OVERLONG, number);
                        Ok(())
                    }
                })?;
                intake.drain(out);
            }
            Kind::Binary { blktrace, intake } => {
                blktrace.end_of_input(input, intake)?;
                intake.drain(out);
            }
            Kind::Lines { lines, parser, sink } => {
                self.text_ended = true;
                lines.end(|line, number| one_line(parser.as_mut(), sink, line, number))?;
                sink.drain(false, out);
            }
            Kind::Records(records) => {
                self.text_ended = true;
                records.end()?;
            }
        }
        Ok(())
    }

    /// Hands out what was held back, and what is known now. Inputs that were not ended
    /// are ended.
    ///
    /// # Errors
    /// [`TraceError::NoEvent`] or [`TraceError::Empty`] if there was nothing.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<Outcome, TraceError> {
        while let Some(input) = self.wants() {
            self.end_of_input(input, out)?;
        }
        let outcome = match &mut self.kind {
            Kind::Events { lines, parser, intake } => {
                let totals = intake.finish(out);
                let mut capabilities = event_capabilities(&totals, intake);
                if let EventParser::Wiscsee = parser {
                    wiscsee::limit(&mut capabilities);
                }
                if let EventParser::Blkparse(blkparse) = parser {
                    blkparse.limit(&mut capabilities);
                    // Old tools print write-zeroes as writes; only one that was printed
                    // proves that these could.
                    capabilities.write_zeroes = intake.write_zeroes;
                }
                event_outcome(lines.count(), capabilities, totals, intake)
            }
            Kind::Binary { blktrace, intake } => {
                let totals = intake.finish(out);
                let mut capabilities = event_capabilities(&totals, intake);
                capabilities.write_zeroes = blktrace.tells_write_zeroes();
                event_outcome(blktrace.records(), capabilities, totals, intake)
            }
            Kind::Lines { lines, parser, sink } => {
                sink.drain(true, out);
                line_outcome(lines.count(), parser.capabilities(), sink)
            }
            Kind::Records(records) => {
                records.sink.drain(true, out);
                line_outcome(records.records(), records.capabilities(), &mut records.sink)
            }
        };
        if !self.has_bytes {
            return Err(TraceError::Empty);
        }
        match outcome {
            (outcome, true) => Ok(outcome),
            (Outcome { lines, .. }, false) => {
                Err(TraceError::NoEvent { format: self.format.name(), lines })
            }
        }
    }

    /// The names that the records refer to.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        match &self.kind {
            Kind::Events { intake, .. } | Kind::Binary { intake, .. } => &intake.names.symbols,
            Kind::Lines { sink, .. } => &sink.symbols,
            Kind::Records(records) => &records.sink.symbols,
        }
    }
}

fn one_line(
    parser: &mut dyn LineParser,
    sink: &mut Sink,
    line: Option<&[u8]>,
    number: u64,
) -> Result<(), TraceError> {
    match line {
        Some(line) => parser.line(line, number, sink),
        None => {
            sink.skip(OVERLONG, number);
            Ok(())
        }
    }
}

/// What event formats carry, as far as this trace does.
pub(crate) fn event_capabilities(totals: &Totals, intake: &Intake) -> Capabilities {
    let by_command = matches!(intake.count_from(), CountFrom::Nvme { .. });
    Capabilities {
        operation: true,
        address: true,
        discard: !by_command,
        write_zeroes: true,
        flush: true,
        fua: true,
        sync_meta: !by_command,
        completion: totals.completed > 0,
        queue: totals.queued > 0,
        process: true,
        file: false,
        stream: by_command,
        clock_ns: intake.clock_ns(),
    }
}

/// The outcome, and whether there was anything at all.
pub(crate) fn event_outcome(
    lines: u64,
    capabilities: Capabilities,
    totals: Totals,
    intake: &mut Intake,
) -> (Outcome, bool) {
    let ends = totals.phases.iter().skip(1).map(|&(_, start_ns)| start_ns);
    let phases = totals
        .phases
        .iter()
        .zip(ends.chain([totals.end_ns]))
        .map(|(&(name, start_ns), end_ns)| PhaseSpan {
            name: intake.names.symbols.name(name).to_owned(),
            start_ns,
            end_ns,
        })
        .collect();
    let only_queue_events =
        totals.records == 0 && totals.issue_events == 0 && totals.queue_events > 0;
    let only_nvme_commands = totals.records == 0
        && totals.issue_events + totals.queue_events == 0
        && totals.commands > 0;
    let outcome = Outcome {
        lines,
        capabilities,
        skips: std::mem::take(&mut intake.skips),
        phases,
        only_queue_events,
        only_nvme_commands,
        unpaired: totals.unpaired,
    };
    (outcome, totals.records > 0 || only_queue_events || only_nvme_commands)
}

fn line_outcome(lines: u64, can: Capabilities, sink: &mut Sink) -> (Outcome, bool) {
    let seen = sink.seen();
    let capabilities = Capabilities {
        completion: can.completion && seen.completed > 0,
        queue: can.queue && seen.queued > 0,
        ..can
    };
    let outcome = Outcome {
        lines,
        capabilities,
        skips: std::mem::take(&mut sink.skips),
        phases: Vec::new(),
        only_queue_events: false,
        only_nvme_commands: false,
        unpaired: if capabilities.completion { seen.records - seen.completed } else { 0 },
    };
    (outcome, seen.records > 0)
}
