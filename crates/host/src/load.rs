//! Loads a trace from files: opens, recognises, reads, filters, counts and stores it in one
//! pass.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use prism_trace::detect::{detect, not_text};
use prism_trace::summary::Summary;
use prism_trace::{
    CountFrom, CountedFrom, Extents, Format, LoadSpec, LogicalBlock, Op, ReadReport, Reader,
    ReaderOptions, Record, Symbol, Symbols, Tallies, TraceError, TraceFacts, TraceInfo,
};
use twox_hash::XxHash64;

use crate::error::HostError;
use crate::input::{Input, read_text};
use crate::parquet::ParquetReader;
use crate::progress::Progress;
use crate::siblings::expand;
use crate::spool::{Spool, SpoolWriter};

/// The first bytes of a Parquet file.
pub const PARQUET: &[u8; 4] = b"PAR1";

/// Bytes by which a format is recognised: headers of comments are shorter.
const HEAD_BYTES: usize = 1 << 20;

/// The most discards that are kept after the end of a selected phase: 21 MB.
const LATER_MAX: usize = 1 << 18;

/// Bytes passed to the reader at once.
const FEED_BYTES: usize = 256 << 10;

/// A trace, ready to be replayed and reported. A clone shares the records.
#[derive(Clone, Debug)]
pub struct LoadedTrace {
    /// What is known of it.
    pub info: TraceInfo,
    /// The selected records.
    pub spool: Spool,
}

/// Loads the trace that `spec` names.
///
/// # Errors
/// [`HostError`], each naming the file.
pub fn load_trace(spec: &LoadSpec, progress: &Progress) -> Result<LoadedTrace, HostError> {
    let mut files = Vec::new();
    for path in &files_of(&spec.paths)? {
        files.push(Opened::new(Input::open(path)?)?);
    }
    let name = files[0].input.name().to_owned();
    let result = if files.iter().any(Opened::is_parquet) {
        load_parquet(spec, files, progress)
    } else {
        load_bytes(spec, files, progress)
    };
    progress.clear();
    let (keep, symbols, facts) = result?;
    keep.check_names(&name, &symbols, &facts)?;
    keep.into_trace(name, symbols, facts)
}

/// A trace of records that are made, not read.
///
/// # Errors
/// [`HostError::Temporary`] if the temporary file cannot be written.
pub fn trace_of_records(
    name: &str,
    records: impl IntoIterator<Item = Record>,
    facts: TraceFacts,
    progress: &Progress,
) -> Result<LoadedTrace, HostError> {
    let (mut keep, symbols) = (Keep::everything(), Symbols::new());
    let (mut batch, mut done) = (Vec::new(), 0);
    let mut records = records.into_iter();
    progress.start_count("making:", "requests", None);
    loop {
        batch.extend(records.by_ref().take(MADE));
        if batch.is_empty() {
            break;
        }
        done += batch.len() as u64;
        keep.take(&mut batch, &symbols)?;
        progress.reached(done);
    }
    progress.clear();
    keep.into_trace(name.to_owned(), symbols, facts)
}

/// Records that are made at once.
const MADE: usize = 1 << 16;

/// A digest of the bytes of every file of the trace that `path` names.
///
/// # Errors
/// [`HostError`] naming the file.
pub fn digest(path: &Path) -> Result<String, HostError> {
    let mut hash = XxHash64::with_seed(0);
    for path in files_of(&[path.to_path_buf()])? {
        let name = || path.display().to_string();
        let file = File::open(&path).map_err(|source| HostError::Open { file: name(), source })?;
        if file.metadata().is_ok_and(|meta| !meta.is_file()) {
            let what = "this is no regular file; name one that can be read again";
            return Err(HostError::content(&name(), what));
        }
        let (mut file, mut bytes, mut byte) = (file, vec![0; FEED_BYTES], 0);
        loop {
            match file.read(&mut bytes) {
                Ok(0) => break,
                Ok(read) => {
                    hash.write(&bytes[..read]);
                    byte += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(HostError::Read { file: name(), byte, source }),
            }
        }
        hash.write(&u64::to_le_bytes(byte));
    }
    Ok(format!("{:016x}", hash.finish()))
}

/// Every file of the trace that `paths` name, each once.
fn files_of(paths: &[PathBuf]) -> Result<Vec<PathBuf>, HostError> {
    // A path that does not exist, or standard input, is only equal to itself.
    let same = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut files = Vec::new();
    for (place, path) in paths.iter().enumerate() {
        if paths[..place].iter().any(|other| same(other) == same(path)) {
            let what = "this file is named twice; name each file of the trace once";
            return Err(HostError::content(&path.display().to_string(), what));
        }
        // Several files of a blktrace recording may be named, and each means all of them.
        for file in expand(path) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    Ok(files)
}

type Loaded<'a> = (Keep<'a>, Symbols, TraceFacts);

/// An input whose beginning has been read.
struct Opened {
    input: Input,
    head: Vec<u8>,
}

impl Opened {
    fn new(mut input: Input) -> Result<Self, HostError> {
        let mut head = vec![0; HEAD_BYTES];
        let filled = input.read_full(&mut head).map_err(|error| input.explain(error, 0))?;
        head.truncate(filled);
        if filled == 0 {
            return Err(HostError::Empty { file: input.name().to_owned() });
        }
        Ok(Self { input, head })
    }

    fn is_parquet(&self) -> bool {
        self.head.starts_with(PARQUET)
    }

    /// Replaces the content of `bytes` by the next bytes; it is empty at the end.
    fn next(&mut self, bytes: &mut Vec<u8>) -> std::io::Result<()> {
        bytes.clear();
        if !self.head.is_empty() {
            std::mem::swap(bytes, &mut self.head);
            return Ok(());
        }
        bytes.resize(FEED_BYTES, 0);
        let filled = self.input.read_full(bytes);
        bytes.truncate(*filled.as_ref().unwrap_or(&0));
        filled.map(|_| ())
    }
}

fn load_parquet<'a>(
    spec: &'a LoadSpec,
    mut files: Vec<Opened>,
    progress: &Progress,
) -> Result<Loaded<'a>, HostError> {
    if let Some(second) = files.get(1) {
        let what = "a Parquet trace is one file; name one at a time";
        return Err(HostError::content(second.input.name(), what));
    }
    let input = files.remove(0).input;
    let name = input.name().to_owned();
    if spec.format.is_some() || spec.map.is_some() || spec.blkparse_format.is_some() {
        let what = "this is a Parquet trace, which needs no --format, --map or \
                    --blkparse-format; leave it out";
        return Err(HostError::content(&name, what));
    }
    if spec.disorder.is_some() {
        let what = "this is a Parquet trace, whose requests are in order; leave out --disorder";
        return Err(HostError::content(&name, what));
    }
    if spec.nvme_block.is_some() {
        return Err(HostError::BlockSizeKnown { file: name });
    }
    let mut reader = ParquetReader::open(input.reopen()?.into_file()?, &name)?;
    progress.start_count("reading", "requests", Some(reader.records()));
    let (mut keep, mut symbols, mut batch) = (Keep::new(spec), Symbols::new(), Vec::new());
    let mut read = 0;
    loop {
        reader.next_batch(&mut symbols, &mut batch)?;
        if batch.is_empty() {
            let facts = reader.facts().clone();
            return Ok((keep, symbols, facts));
        }
        read += batch.len() as u64;
        keep.take(&mut batch, &symbols)?;
        progress.reached(read);
    }
}

fn load_bytes<'a>(
    spec: &'a LoadSpec,
    mut files: Vec<Opened>,
    progress: &Progress,
) -> Result<Loaded<'a>, HostError> {
    let format = format_of(spec, &files)?;
    if let Some(second) = files.get(1).filter(|_| !format.joins_files()) {
        let what =
            format!("a trace of the format {} is one file; name one at a time", format.name());
        return Err(HostError::content(second.input.name(), what));
    }
    let map_toml = match &spec.map {
        Some(path) => Some(read_text(path)?),
        None => None,
    };
    let mut options = ReaderOptions {
        format,
        blkparse_format: spec.blkparse_format.clone(),
        map_toml,
        count_from: CountFrom::Issue,
        disorder: spec.disorder,
    };
    let mut counted_from = CountedFrom::Issue;
    let block = spec.nvme_block.unwrap_or(LogicalBlock::SECTOR);
    loop {
        let mut keep = Keep::new(spec);
        let (outcome, symbols) = Pass::new(&options, &mut files)?.run(&mut keep, progress)?;
        let is_first = options.count_from == CountFrom::Issue;
        (options.count_from, counted_from) = if is_first && outcome.only_queue_events {
            (CountFrom::Queue, CountedFrom::Queue)
        } else if is_first && outcome.only_nvme_commands {
            (CountFrom::Nvme { block }, CountedFrom::Nvme)
        } else {
            let mut facts = TraceFacts::new(format.name(), &outcome, counted_from);
            if counted_from == CountedFrom::Nvme {
                facts.nvme_block_bytes = Some(block.bytes().0);
            } else if spec.nvme_block.is_some() {
                let file = files[0].input.name().to_owned();
                return Err(HostError::BlockSizeKnown { file });
            }
            return Ok((keep, symbols, facts));
        };
        for file in std::mem::take(&mut files) {
            files.push(Opened::new(file.input.reopen()?)?);
        }
    }
}

/// The format of the trace: the given one, or the one that all files are recognised as.
fn format_of(spec: &LoadSpec, files: &[Opened]) -> Result<Format, HostError> {
    let named = match spec {
        LoadSpec { map: Some(_), .. } => Some(Format::Map),
        LoadSpec { blkparse_format: Some(_), .. } => Some(Format::Blkparse),
        _ => spec.format,
    };
    if let Some(format) = named {
        // Packed text would otherwise be reported as lines that cannot be read.
        let packed = |file: &Opened| Some((file.input.name().to_owned(), not_text(&file.head)?));
        return match files.iter().filter(|_| format.is_text()).find_map(packed) {
            Some((file, what)) => {
                Err(HostError::Trace { file, error: TraceError::NotText { what } })
            }
            None => Ok(format),
        };
    }
    let mut first = None;
    for file in files {
        let name = || file.input.name().to_owned();
        let format =
            detect(&file.head).map_err(|error| HostError::Trace { file: name(), error })?;
        if *first.get_or_insert(format) != format {
            let what = format!(
                "this looks like {}, the file before it like {}; name the files of one trace only",
                format.name(),
                first.map_or("", Format::name),
            );
            return Err(HostError::content(file.input.name(), what));
        }
    }
    Ok(first.expect("a trace has at least one file"))
}

/// One reading of all files.
struct Pass<'a> {
    reader: Reader,
    files: &'a mut [Opened],
    /// Whether the reader merges the files; otherwise they follow one another.
    merged: bool,
    current: usize,
    /// The line after the last one of each file that has ended, counted over all.
    line_ends: Vec<u64>,
    lines: u64,
    total: Option<u64>,
}

impl<'a> Pass<'a> {
    fn new(options: &ReaderOptions, files: &'a mut [Opened]) -> Result<Self, HostError> {
        let merged = options.format == Format::Blktrace;
        let inputs = if merged { files.len() } else { 1 };
        let reader = Reader::new(options.clone(), inputs)
            .map_err(|error| HostError::Trace { file: files[0].input.name().to_owned(), error })?;
        let total = files.iter().map(|file| file.input.size()).sum();
        Ok(Self { reader, files, merged, current: 0, line_ends: vec![], lines: 0, total })
    }

    fn run(
        mut self,
        keep: &mut Keep<'_>,
        progress: &Progress,
    ) -> Result<(ReadReport, Symbols), HostError> {
        progress.start_bytes("reading", self.total);
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        let mut ends_line = true;
        while let Some(wanted) = self.reader.wants() {
            let file = if self.merged { wanted } else { self.current };
            if let Err(error) = self.files[file].next(&mut bytes) {
                let lines = self.lines_of_current();
                return Err(self.files[file].input.explain(error, lines));
            }
            let fed = if !bytes.is_empty() {
                ends_line = bytes.ends_with(b"\n");
                self.count_lines(&bytes);
                self.reader.feed(wanted, &bytes, &mut records)
            } else if self.merged || file + 1 == self.files.len() {
                self.reader.end_of_input(wanted, &mut records)
            } else {
                self.next_file(ends_line, &mut records)
            };
            fed.map_err(|error| self.locate(file, error))?;
            self.hand_over(&mut records, keep)?;
            progress.reached(self.files.iter().map(|file| file.input.taken()).sum());
        }
        let outcome = self.reader.finish(&mut records);
        let outcome = outcome.map_err(|error| self.locate(self.current, error))?;
        self.hand_over(&mut records, keep)?;
        Ok((outcome, self.reader.symbols().clone()))
    }

    fn hand_over(
        &mut self,
        records: &mut Vec<Record>,
        keep: &mut Keep<'_>,
    ) -> Result<(), HostError> {
        if !records.is_empty() {
            // A record shows that the trace has events of the kind that is counted, so the
            // input will not be read a second time.
            self.files.iter_mut().for_each(|file| file.input.read_once());
            keep.take(records, self.reader.symbols())?;
        }
        Ok(())
    }

    /// Continues with the next file, after ending a last line without a line feed.
    fn next_file(&mut self, ends_line: bool, out: &mut Vec<Record>) -> Result<(), TraceError> {
        self.current += 1;
        if !ends_line {
            self.lines += 1;
            self.reader.feed(0, b"\n", out)?;
        }
        self.line_ends.push(self.lines);
        Ok(())
    }

    /// Lines are counted here only for several files, where the count of the reader is not
    /// enough.
    fn count_lines(&mut self, bytes: &[u8]) {
        if !self.merged && self.files.len() > 1 {
            self.lines += memchr::memchr_iter(b'\n', bytes).count() as u64;
        }
    }

    /// Whole lines (or records) of the current file that the reader has seen.
    fn lines_of_current(&mut self) -> u64 {
        let lines = match self.reader.finish(&mut Vec::new()) {
            Ok(outcome) => outcome.lines,
            Err(TraceError::NoRequest { lines, .. }) => lines,
            Err(_) => 0,
        };
        lines.saturating_sub(self.line_ends.last().copied().unwrap_or(0))
    }

    /// The error with the name of its file, and its line counted from that file's start.
    fn locate(&self, file: usize, error: TraceError) -> HostError {
        let mut place = file;
        let mut local = |line: u64| {
            if self.merged {
                return line;
            }
            place = self.line_ends.partition_point(|&end| end < line);
            line - place.checked_sub(1).map_or(0, |before| self.line_ends[before])
        };
        let error = match error {
            TraceError::Bad { line, what } => TraceError::Bad { line: local(line), what },
            TraceError::TimeRunsBackwards { line, back, window, is_full } => {
                let line = local(line);
                TraceError::TimeRunsBackwards { line, back, window, is_full }
            }
            other => other,
        };
        HostError::Trace { file: self.files[place].input.name().to_owned(), error }
    }
}

/// A name that records must have, and its symbol once it has appeared in the trace.
struct NameFilter<'a> {
    name: Option<&'a str>,
    symbol: Option<Symbol>,
}

impl<'a> NameFilter<'a> {
    fn new(name: Option<&'a str>) -> Self {
        Self { name, symbol: None }
    }

    fn resolve(&mut self, symbols: &Symbols) {
        if self.symbol.is_none() {
            self.symbol = self.name.and_then(|name| symbols.get(name));
        }
    }

    fn admits(&self, symbol: Symbol) -> bool {
        self.name.is_none() || self.symbol == Some(symbol)
    }
}

/// Filters, counts and stores the records of a trace while it is read.
pub(crate) struct Keep<'a> {
    phase: NameFilter<'a>,
    source: NameFilter<'a>,
    spool: SpoolWriter,
    later_discards: Vec<Record>,
    summary: Summary,
    /// Over all records, also those not selected.
    devices: Tallies,
    /// Over the records of the selected device.
    touched: Extents,
    phases: Tallies,
    /// Over the selected records.
    processes: Tallies,
    files: Tallies,
}

impl Keep<'static> {
    /// Keeps every record.
    pub(crate) fn everything() -> Self {
        Self::of(None, None)
    }
}

impl<'a> Keep<'a> {
    fn new(spec: &'a LoadSpec) -> Self {
        Self::of(spec.phase.as_deref(), spec.source.as_deref())
    }

    fn of(phase: Option<&'a str>, source: Option<&'a str>) -> Self {
        Self {
            phase: NameFilter::new(phase),
            source: NameFilter::new(source),
            spool: SpoolWriter::new(),
            later_discards: Vec::new(),
            summary: Summary::new(),
            devices: Tallies::default(),
            touched: Extents::default(),
            phases: Tallies::default(),
            processes: Tallies::default(),
            files: Tallies::default(),
        }
    }

    /// The trace of the kept records.
    pub(crate) fn into_trace(
        self,
        name: String,
        symbols: Symbols,
        facts: TraceFacts,
    ) -> Result<LoadedTrace, HostError> {
        let mut touched = self.touched;
        touched.merge();
        let info = TraceInfo {
            name,
            later_discards: self.later_discards,
            summary: self.summary.figures(&symbols),
            symbols,
            facts,
            devices: self.devices,
            touched,
            phases: self.phases,
            processes: self.processes,
            files: self.files,
            phase: self.phase.name.map(str::to_owned),
            source: self.source.name.map(str::to_owned),
        };
        Ok(LoadedTrace { info, spool: self.spool.finish()? })
    }

    /// Adds all of `records`, whose names are in `symbols`, and empties the vector.
    pub(crate) fn take(
        &mut self,
        records: &mut Vec<Record>,
        symbols: &Symbols,
    ) -> Result<(), HostError> {
        self.phase.resolve(symbols);
        self.source.resolve(symbols);
        for record in records.drain(..) {
            self.devices.add(record.device, &record);
            self.phases.add(record.phase, &record);
            if !self.source.admits(record.device) {
                continue;
            }
            self.touched.add(&record);
            if self.phase.admits(record.phase) {
                self.later_discards.clear();
                self.processes.add(record.comm, &record);
                if record.file != Symbol::NONE {
                    self.files.add(record.file, &record);
                }
                self.summary.add(&record);
                self.spool.push(record)?;
            } else if record.op == Op::Discard && self.later_discards.len() < LATER_MAX {
                self.later_discards.push(record);
            }
        }
        Ok(())
    }

    fn check_names(
        &self,
        file: &str,
        symbols: &Symbols,
        facts: &TraceFacts,
    ) -> Result<(), HostError> {
        let check = |kind, name: &str, known: Vec<String>| {
            if known.iter().any(|other| other == name) {
                return Ok(());
            }
            Err(HostError::UnknownName { file: file.to_owned(), kind, name: name.into(), known })
        };
        if let Some(name) = self.phase.name {
            let mut known = facts.phase_names();
            for other in self.phases.names(symbols) {
                if !known.contains(&other) {
                    known.push(other);
                }
            }
            check("phase", name, known)?;
        }
        if let Some(name) = self.source.name {
            check("device", name, self.devices.names(symbols))?;
        }
        Ok(())
    }
}
