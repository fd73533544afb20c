//! Formats of graphs: bytes in, edges out.

mod fields;
mod lines;
mod matrix;
mod pairs;
mod table;

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::Named;

use crate::collect::Collector;
use crate::error::{GraphError, Result};
use crate::ingest::{Edge, Ingest};
use crate::pool::{Job, Pool};

pub use fields::is_comment;

prism_base::named_enum! {
    /// A format of graphs.
    pub enum Format {
        /// A line for each edge: source, target, and perhaps a weight. SNAP, LDBC `.e`, GAP `.el`
        /// and `.wel`.
        Edges = "edges",
        /// A line for each vertex: its number, and those of its neighbours.
        Adjacency = "adjacency",
        /// Matrix Market, coordinates.
        MatrixMarket = "matrix-market",
        /// METIS.
        Metis = "metis",
        /// Pairs of little-endian `u32`.
        Pairs32 = "pairs32",
        /// Pairs of little-endian `u64`.
        Pairs64 = "pairs64",
        /// Columns with names.
        Csv = "csv",
    }
}

impl Format {
    /// The format of an input, by its first bytes, else by the ending of its name without those of
    /// compression.
    #[must_use]
    pub fn recognise(name: &str, head: &[u8]) -> Self {
        let head = without_mark(head);
        if head.starts_with(b"%%MatrixMarket") {
            return Self::MatrixMarket;
        }
        let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
        match name.rsplit_once('.').map(|(_, ending)| ending) {
            Some("mtx") => Self::MatrixMarket,
            Some("graph" | "metis") => Self::Metis,
            Some("adj") => Self::Adjacency,
            Some("csv")
                if head.first().is_some_and(|byte| !byte.is_ascii_digit() && *byte != b'#') =>
            {
                Self::Csv
            }
            Some("bin" | "u32") => Self::Pairs32,
            Some("u64") => Self::Pairs64,
            _ => Self::Edges,
        }
    }
}

/// A text without the mark of UTF-8 with which some programs begin theirs.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text)
}

/// The usual name of the column of weights.
const WEIGHT: &str = "weight";

/// The names of the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Of the sources.
    pub source: String,
    /// Of the targets.
    pub target: String,
    /// Of the weights; by default `weight`.
    pub weight: Option<String>,
}

impl Columns {
    /// The name of the column of weights.
    #[must_use]
    pub fn of_weights(columns: Option<&Self>) -> &str {
        columns.and_then(|columns| columns.weight.as_deref()).unwrap_or(WEIGHT)
    }

    /// What helps if there is no column of weights.
    pub const NO_WEIGHTS: &str = "weights are in the third of --columns A,B,W, or the column \
                                  weight; leave --weighted away if there are none";

    /// What to say of a table with these columns if its weights are not read; `None` if it seems to
    /// have none.
    #[must_use]
    pub fn unused_weights(names: &[String]) -> Option<String> {
        let weight = names.iter().find(|name| name.eq_ignore_ascii_case(WEIGHT))?;
        Some(format!("the column {weight:?} is not read; give --weighted if edges have weights"))
    }
}

/// What a reader has to know of the graph.
#[derive(Clone, Debug)]
pub struct ReadOptions {
    /// The format.
    pub format: Format,
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// The columns of a table; `None` for the first two, and `weight`.
    pub columns: Option<Columns>,
}

/// Edges and vertices that were read.
#[derive(Debug, Default)]
pub struct Parsed {
    /// Edges.
    pub edges: Vec<Edge>,
    /// Vertices that need not have edges.
    pub vertices: Vec<u64>,
    /// All vertices from 1 up to this number are there, too.
    pub up_to: u64,
}

/// What is wrong with a line.
pub(crate) struct Wrong {
    /// Lines before it in the piece.
    line: u64,
    what: String,
}

pub(crate) type Parse<T> = std::result::Result<T, Wrong>;

/// Reads a graph from bytes in pieces of any length.
pub struct Reader {
    options: ReadOptions,
    rest: Vec<u8>,
    /// What is known of the bytes before `rest`.
    state: ReaderState,
    /// What the user should know of the header.
    hint: Option<String>,
}

/// What a reader knows of the bytes that it has read, so that another one can go on.
#[derive(Clone, Debug, Default, BorshSerialize, BorshDeserialize)]
pub struct ReaderState {
    /// The name of the format.
    format: String,
    /// Lines, or bytes of a binary format.
    done: u64,
    matrix: matrix::State,
    metis: matrix::MetisState,
    table: Option<table::Places>,
}

/// The longest line that is accepted: that of a vertex with 100 million neighbours.
const LINE_MAX: usize = 1 << 30;

impl Reader {
    /// Before the first byte.
    ///
    /// # Errors
    /// [`GraphError::Refused`] if the format does not have what is wanted of it.
    pub fn new(options: ReadOptions) -> Result<Self> {
        let refused = |what: &str| Err(GraphError::Refused(what.into()));
        match options.format {
            Format::Adjacency if options.weighted => {
                return refused("lists of neighbours have no weights; leave --weighted away");
            }
            Format::Metis if options.directed => {
                return refused("edges of METIS have no direction; leave --directed away");
            }
            format if format != Format::Csv && options.columns.is_some() => {
                return refused(
                    "only CSV and Parquet have columns with names; give --format=csv, or no \
                     --columns",
                );
            }
            _ => {}
        }
        Ok(Self { options, rest: Vec::new(), state: ReaderState::default(), hint: None })
    }

    /// After bytes that another reader with these options has read; `None` if their format is none
    /// that exists.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn resume(options: ReadOptions, state: ReaderState) -> Option<Result<Self>> {
        let options = ReadOptions { format: Format::from_name(&state.format)?, ..options };
        Some(Self::new(options).map(|reader| Self { state, ..reader }))
    }

    /// What another reader needs to go on, and how many of the last bytes it has to read again.
    #[must_use]
    pub fn save(&self) -> (ReaderState, usize) {
        let format = self.options.format.name().to_owned();
        (ReaderState { format, ..self.state.clone() }, self.rest.len())
    }

    /// What the user should know of the header that was read; `None` if it was returned before.
    pub fn take_hint(&mut self) -> Option<String> {
        self.hint.take()
    }

    /// Whole lines, or edges of a binary format, in what was read and in `piece`, which follows it.
    #[must_use]
    pub fn whole_with(&self, piece: &[u8]) -> u64 {
        match self.options.format {
            format @ (Format::Pairs32 | Format::Pairs64) => {
                let bytes = self.state.done + (self.rest.len() + piece.len()) as u64;
                bytes / pairs::record(format, self.options.weighted) as u64
            }
            _ => self.state.done + count_lines(piece),
        }
    }

    /// Reads a piece; `last` if none follows. On several threads if the format allows it.
    ///
    /// # Errors
    /// [`GraphError::Input`] for the first line that is wrong; those of [`Ingest::add`].
    pub fn read(
        &mut self,
        pool: &dyn Pool,
        piece: &[u8],
        last: bool,
        into: &mut Ingest<'_>,
    ) -> Result<()> {
        match self.options.format {
            Format::Pairs32 | Format::Pairs64 => return self.read_pairs(pool, piece, last, into),
            _ => {}
        }
        let mut rest = std::mem::take(&mut self.rest);
        let newline = memchr::memrchr(b'\n', piece);
        let whole = if last { piece.len() } else { newline.map_or(0, |at| at + 1) };
        let (whole, after) = piece.split_at(whole);
        if !rest.is_empty() && !whole.is_empty() {
            // The line that began in the last piece.
            let end = memchr::memchr(b'\n', whole).map_or(whole.len(), |at| at + 1);
            rest.extend_from_slice(&whole[..end]);
            self.lines(pool, &rest, into)?;
            rest.clear();
            self.lines(pool, &whole[end..], into)?;
        } else if last {
            rest.extend_from_slice(whole);
            self.lines(pool, &rest, into)?;
            rest.clear();
        } else {
            self.lines(pool, whole, into)?;
        }
        rest.extend_from_slice(after);
        if rest.len() > LINE_MAX {
            let what = "the line is longer than 1 GiB; check --format".to_owned();
            return Err(GraphError::Input { at: (self.state.done + 1).to_string(), what });
        }
        self.rest = rest;
        if last { self.end() } else { Ok(()) }
    }

    /// Reads whole lines.
    fn lines(&mut self, pool: &dyn Pool, bytes: &[u8], into: &mut Ingest<'_>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let bytes = if self.state.done == 0 { without_mark(bytes) } else { bytes };
        let weighted = self.options.weighted;
        match self.options.format {
            Format::Edges => {
                let edges = |part: &[u8]| lines::edges(part, weighted);
                self.on_threads(pool, bytes, into, &edges)
            }
            Format::Adjacency => self.on_threads(pool, bytes, into, &lines::adjacency),
            Format::Csv => {
                let (places, skipped) = match self.state.table.take() {
                    Some(places) => (places, 0),
                    None => {
                        let head = table::header(bytes, &self.options);
                        let head = head.map_err(|wrong| wrong.at(self.state.done))?;
                        self.hint = head.hint;
                        (head.places, head.bytes)
                    }
                };
                self.state.done += u64::from(skipped > 0);
                let rows = |part: &[u8]| table::rows(part, &places);
                let read = self.on_threads(pool, &bytes[skipped..], into, &rows);
                self.state.table = Some(places);
                read
            }
            Format::MatrixMarket => {
                let parsed = self.state.matrix.lines(bytes, &self.options);
                self.take(parsed, count_lines(bytes), into)
            }
            Format::Metis => {
                let parsed = self.state.metis.lines(bytes, weighted);
                self.take(parsed, count_lines(bytes), into)
            }
            Format::Pairs32 | Format::Pairs64 => unreachable!("they have no lines"),
        }
    }

    /// Takes what was read of `lines` lines.
    fn take(&mut self, parsed: Parse<Parsed>, lines: u64, into: &mut Ingest<'_>) -> Result<()> {
        let parsed = parsed.map_err(|wrong| wrong.at(self.state.done))?;
        into.add_vertices_up_to(parsed.up_to);
        into.collectors(1)[0].add_parsed(&parsed);
        self.state.done += lines;
        into.take_collected()
    }

    /// Reads lines on several threads, each of which collects what is in its part.
    fn on_threads(
        &mut self,
        pool: &dyn Pool,
        bytes: &[u8],
        into: &mut Ingest<'_>,
        parse: &(dyn Fn(&[u8]) -> Parse<Parsed> + Sync),
    ) -> Result<()> {
        let count = pool.threads().min(bytes.len() / PART_MIN).max(1);
        let mut parts = Vec::new();
        let mut rest = bytes;
        for left in (1..=count).rev() {
            let len = rest.len() / left;
            parts.push(take_lines(&mut rest, len));
        }
        let collect = |mut part: &[u8], collector: &mut Collector| -> Parse<u64> {
            let mut lines = 0;
            while !part.is_empty() {
                let some = take_lines(&mut part, PIECE);
                let parsed = parse(some).map_err(|wrong| wrong.after(lines))?;
                collector.add_parsed(&parsed);
                lines += count_lines(some);
            }
            Ok(lines)
        };
        for lines in each(pool, &parts, into.collectors(count), &collect) {
            self.state.done += lines.map_err(|wrong| wrong.at(self.state.done))?;
        }
        into.take_collected()
    }

    fn read_pairs(
        &mut self,
        pool: &dyn Pool,
        piece: &[u8],
        last: bool,
        into: &mut Ingest<'_>,
    ) -> Result<()> {
        let record = pairs::record(self.options.format, self.options.weighted);
        // The edge that began in the last piece.
        let missing = if self.rest.is_empty() { 0 } else { record - self.rest.len() };
        let (begun, piece) = piece.split_at(missing.min(piece.len()));
        self.rest.extend_from_slice(begun);
        if self.rest.len() == record {
            let whole = std::mem::take(&mut self.rest);
            self.pairs(pool, &whole, into)?;
        }
        let (whole, rest) = piece.split_at(piece.len() / record * record);
        self.pairs(pool, whole, into)?;
        self.rest.extend_from_slice(rest);
        if last && !self.rest.is_empty() {
            let what = format!(
                "the file ends within an edge of {record} bytes; it is cut off, or has another \
                 --format"
            );
            return Err(GraphError::Input { at: format!("byte {}", self.state.done), what });
        }
        Ok(())
    }

    /// Reads whole pairs on several threads.
    fn pairs(&mut self, pool: &dyn Pool, bytes: &[u8], into: &mut Ingest<'_>) -> Result<()> {
        let ReadOptions { format, weighted, .. } = self.options;
        let record = pairs::record(format, weighted);
        let count = pool.threads().min(bytes.len() / PART_MIN).max(1);
        let part = (bytes.len() / record).div_ceil(count).max(1) * record;
        let parts: Vec<&[u8]> = bytes.chunks(part).collect();
        let collect = |part: &[u8], collector: &mut Collector| -> std::result::Result<u64, u64> {
            let some = PIECE / record * record;
            for (some, first) in part.chunks(some).zip((0..).step_by(some)) {
                collector.add(&pairs::edges(format, weighted, some).map_err(|at| first + at)?);
            }
            Ok(part.len() as u64)
        };
        for read in each(pool, &parts, into.collectors(count), &collect) {
            self.state.done += read.map_err(|at| GraphError::Input {
                at: format!("byte {}", self.state.done + at),
                what: "the weight is not a finite number".into(),
            })?;
        }
        into.take_collected()
    }

    /// Checks that nothing is missing at the end.
    fn end(&self) -> Result<()> {
        let missing = match self.options.format {
            Format::MatrixMarket => self.state.matrix.missing(),
            Format::Metis => self.state.metis.missing(),
            _ => None,
        };
        match missing {
            Some(what) => Err(GraphError::Input { at: (self.state.done + 1).to_string(), what }),
            None => Ok(()),
        }
    }
}

impl Wrong {
    /// The same, of a piece that begins with more lines.
    fn after(self, lines: u64) -> Self {
        Self { line: self.line + lines, ..self }
    }

    fn at(self, done: u64) -> GraphError {
        GraphError::Input { at: (done + self.line + 1).to_string(), what: self.what }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Bytes for which a thread is worth it.
const PART_MIN: usize = 256 << 10;
/// Bytes that a thread parses before it collects what is in them: their edges stay in its cache.
const PIECE: usize = 64 << 10;

/// Takes whole lines of about `len` bytes from the front of `rest`, or all that is left.
fn take_lines<'a>(rest: &mut &'a [u8], len: usize) -> &'a [u8] {
    let end = memchr::memchr(b'\n', &rest[len.min(rest.len())..]);
    let (lines, after) = rest.split_at(end.map_or(rest.len(), |at| len + at + 1));
    *rest = after;
    lines
}

/// Calls `collect` with each part and a collector, on several threads; returns the results in the
/// order of the parts.
fn each<T: Send>(
    pool: &dyn Pool,
    parts: &[&[u8]],
    collectors: &mut [Collector],
    collect: &(dyn Fn(&[u8], &mut Collector) -> T + Sync),
) -> Vec<T> {
    let mut results: Vec<Option<T>> = parts.iter().map(|_| None).collect();
    let jobs = parts.iter().zip(collectors).zip(&mut results);
    let jobs = jobs.map(|((part, collector), result)| {
        Box::new(move || *result = Some(collect(part, collector))) as Job<'_>
    });
    pool.run(jobs.collect());
    results.into_iter().map(|result| result.expect("every job has run")).collect()
}

/// Adds the vertices of a list, LDBC's `.v`: a number in each line, other columns are ignored.
///
/// # Errors
/// [`GraphError::Input`] for the first line that is wrong.
pub fn read_vertices(bytes: &[u8], into: &mut Ingest<'_>) -> Result<()> {
    into.add_vertices(&lines::vertices(without_mark(bytes)).map_err(|wrong| wrong.at(0))?)
}
