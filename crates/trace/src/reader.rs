//! The entry point for bytes: a [`Reader`] turns the bytes of any known format into records in
//! the order of their issue times.

use crate::blktrace::Blktrace;
use crate::data_sets::records::Records;
use crate::error::TraceError;
use crate::format::Format;
use crate::formats::{self, EventParser, Parser};
use crate::intake::Intake;
use crate::lines::Lines;
use crate::options::ReaderOptions;
use crate::read_report::{ReadReport, event_capabilities, of_events, of_lines};
use crate::record::Record;
use crate::sink::{DISORDER_NS, LineParser, Sink};
use crate::skips::SkipReason;
use crate::symbols::Symbols;

/// Lines after which a reader of independent lines returns the records that are in order.
const DRAIN_LINES: u64 = 4096;

/// Reads one trace, which may consist of several inputs (one file per CPU).
pub struct Reader {
    format: Format,
    kind: Kind,
    has_bytes: bool,
    /// The input of a format with only one input has ended.
    text_ended: bool,
}

enum Kind {
    Events { lines: Lines, parser: EventParser, intake: Box<Intake> },
    Binary { blktrace: Blktrace, intake: Box<Intake> },
    Lines { lines: Lines, parser: Box<dyn LineParser>, sink: Sink },
    Records(Box<Records>),
}

impl Reader {
    /// A reader for `inputs` inputs (1 for all but blktrace).
    ///
    /// # Errors
    /// [`TraceError::FormatString`] or [`TraceError::Bad`] if the `-f` string or the map is
    /// invalid.
    ///
    /// # Panics
    /// If there is no input, or more than one of a format other than blktrace.
    pub fn new(options: ReaderOptions, inputs: usize) -> Result<Self, TraceError> {
        let format = options.format;
        assert!(inputs == 1 || format == Format::Blktrace && inputs > 0, "{inputs} inputs");
        let disorder_ns = |usual_ns: u64| options.disorder.map_or(usual_ns, |disorder| disorder.0);
        let intake = || Box::new(Intake::new(options.count_from, disorder_ns(DISORDER_NS)));
        let kind = match formats::parser(&options)? {
            Parser::Events(parser) => {
                Kind::Events { lines: Lines::default(), parser, intake: intake() }
            }
            Parser::Blktrace => Kind::Binary { blktrace: Blktrace::new(inputs), intake: intake() },
            Parser::Lines(parser) => {
                let sink = Sink::new(disorder_ns(parser.disorder_ns()));
                Kind::Lines { lines: Lines::default(), parser, sink }
            }
            Parser::Records(parser) => {
                Kind::Records(Box::new(Records::new(parser, disorder_ns(DISORDER_NS))))
            }
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

    /// Reads the next bytes of `input`; pieces may end anywhere, also within a line.
    ///
    /// # Errors
    /// [`TraceError`]
    ///
    /// # Panics
    /// If the input has ended or does not exist.
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
                    Ok(line) => parser.line(line, number, intake),
                    Err(reason) => {
                        intake.skip(reason, number);
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
                    Ok(line) => parser.line(line, number, intake),
                    Err(reason) => {
                        intake.skip(reason, number);
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

    /// Returns the remaining records and a report. Inputs that were not ended are ended.
    ///
    /// # Errors
    /// [`TraceError::NoRequest`] or [`TraceError::Empty`] if there was nothing.
    pub fn finish(&mut self, out: &mut Vec<Record>) -> Result<ReadReport, TraceError> {
        while let Some(input) = self.wants() {
            self.end_of_input(input, out)?;
        }
        let (report, has_records) = match &mut self.kind {
            Kind::Events { lines, parser, intake } => {
                let totals = intake.finish(out);
                let mut capabilities = event_capabilities(&totals, intake);
                parser.limit(&mut capabilities, intake);
                of_events(lines.count(), capabilities, totals, intake)
            }
            Kind::Binary { blktrace, intake } => {
                let totals = intake.finish(out);
                let mut capabilities = event_capabilities(&totals, intake);
                capabilities.write_zeroes = blktrace.has_write_zeroes();
                of_events(blktrace.records(), capabilities, totals, intake)
            }
            Kind::Lines { lines, parser, sink } => {
                sink.drain(true, out);
                of_lines(lines.count(), parser.capabilities(), sink)
            }
            Kind::Records(records) => {
                records.sink.drain(true, out);
                of_lines(records.records(), records.capabilities(), &mut records.sink)
            }
        };
        if !self.has_bytes {
            return Err(TraceError::Empty);
        }
        if !has_records {
            let (format, skipped) = (self.format.name(), report.skips.rows());
            return Err(TraceError::NoRequest { format, lines: report.lines, skipped });
        }
        Ok(report)
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
    line: Result<&[u8], SkipReason>,
    number: u64,
) -> Result<(), TraceError> {
    match line {
        Ok(line) => parser.line(line, number, sink),
        Err(reason) => {
            sink.skip(reason, number);
            Ok(())
        }
    }
}
