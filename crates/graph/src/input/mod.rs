//! Formats of graphs: bytes in, edges out.

mod fields;
mod lines;
mod matrix;
mod pairs;
mod table;

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::Named;

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

/// The names of the columns of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Of the sources.
    pub source: String,
    /// Of the targets.
    pub target: String,
    /// Of the weights.
    pub weight: String,
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
                    "only CSV and Parquet have columns with names; give --format csv, or no \
                     --columns",
                );
            }
            _ => {}
        }
        Ok(Self { options, rest: Vec::new(), state: ReaderState::default() })
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

    /// Lines, or bytes of a binary format, that were read.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.state.done
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
        let parts: Vec<(Parse<Parsed>, u64)> = match self.options.format {
            Format::Edges => {
                let edges = |part: &[u8]| lines::edges(part, weighted);
                on_threads(pool, bytes, &edges)
            }
            Format::Adjacency => on_threads(pool, bytes, &lines::adjacency),
            Format::Csv => {
                let options = &self.options;
                let (places, skipped) = match self.state.table.take() {
                    Some(places) => (places, 0),
                    None => {
                        table::header(bytes, options).map_err(|wrong| wrong.at(self.state.done))?
                    }
                };
                let lines = u64::from(skipped > 0);
                self.state.done += lines;
                let rows = |part: &[u8]| table::rows(part, &places);
                let parts = on_threads(pool, &bytes[skipped..], &rows);
                self.state.table = Some(places);
                parts
            }
            Format::MatrixMarket => {
                vec![(self.state.matrix.lines(bytes, &self.options), count_lines(bytes))]
            }
            Format::Metis => vec![(self.state.metis.lines(bytes, weighted), count_lines(bytes))],
            Format::Pairs32 | Format::Pairs64 => unreachable!("they have no lines"),
        };
        for (parsed, lines) in parts {
            let parsed = parsed.map_err(|wrong| wrong.at(self.state.done))?;
            into.add_vertices(&parsed.vertices)?;
            into.add_vertices_up_to(parsed.up_to);
            into.add(&parsed.edges)?;
            self.state.done += lines;
        }
        Ok(())
    }

    fn read_pairs(
        &mut self,
        pool: &dyn Pool,
        piece: &[u8],
        last: bool,
        into: &mut Ingest<'_>,
    ) -> Result<()> {
        self.rest.extend_from_slice(piece);
        let ReadOptions { format, weighted, .. } = self.options;
        let record = pairs::record(format, weighted);
        let whole = self.rest.len() / record * record;
        let count = pool.threads().min(whole / PART_MIN).max(1);
        let part = (whole / record).div_ceil(count).max(1) * record;
        let parts: Vec<&[u8]> = self.rest[..whole].chunks(part).collect();
        let edges = each(pool, &parts, &|part| pairs::edges(format, weighted, part));
        for (edges, first) in edges.into_iter().zip((0..).step_by(part)) {
            let edges = edges.map_err(|at| GraphError::Input {
                at: format!("byte {}", self.state.done + first + at),
                what: "the weight is not a finite number".into(),
            })?;
            into.add(&edges)?;
        }
        self.state.done += whole as u64;
        self.rest.drain(..whole);
        if last && !self.rest.is_empty() {
            let what = format!(
                "the file ends within an edge of {record} bytes; it is cut off, or has another \
                 --format"
            );
            return Err(GraphError::Input { at: format!("byte {}", self.state.done), what });
        }
        Ok(())
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
    fn at(self, done: u64) -> GraphError {
        GraphError::Input { at: (done + self.line + 1).to_string(), what: self.what }
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Bytes for which a thread is worth it.
const PART_MIN: usize = 256 << 10;

/// Parses lines on several threads; the results are in the order of the lines, each with its number
/// of lines.
fn on_threads(
    pool: &dyn Pool,
    bytes: &[u8],
    parse: &(dyn Fn(&[u8]) -> Parse<Parsed> + Sync),
) -> Vec<(Parse<Parsed>, u64)> {
    let count = pool.threads().min(bytes.len() / PART_MIN).max(1);
    let mut parts = Vec::new();
    let mut rest = bytes;
    for left in (1..=count).rev() {
        let about = rest.len() / left;
        let end = memchr::memchr(b'\n', &rest[about.min(rest.len())..]);
        let end = if left == 1 { rest.len() } else { end.map_or(rest.len(), |at| about + at + 1) };
        let (part, after) = rest.split_at(end);
        parts.push(part);
        rest = after;
    }
    each(pool, &parts, &|part| (parse(part), count_lines(part)))
}

/// Calls `parse` with each part, on several threads; returns the results in the order of the parts.
fn each<T: Send>(pool: &dyn Pool, parts: &[&[u8]], parse: &(dyn Fn(&[u8]) -> T + Sync)) -> Vec<T> {
    let mut results: Vec<Option<T>> = parts.iter().map(|_| None).collect();
    let jobs = parts.iter().zip(&mut results);
    let jobs = jobs.map(|(part, result)| Box::new(move || *result = Some(parse(part))) as Job<'_>);
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
