//! Makes stores of files of edges.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use prism_base::Bytes;
use prism_graph::input::{Columns, Format, ReadOptions, Reader, read_vertices};
use prism_graph::{Catalog, GraphError, Ingest, IngestOptions, Keep, Order, Pool, Prepared};
use prism_host::Progress;
use prism_host::input::Input;
use prism_host::interrupt::Scratch;
use serde::Serialize;

use crate::device::{GraphDevice, name_of, refuse_same};
use crate::error::StoreError;
pub use crate::format::{InputFormat, parse_columns, parse_format, parse_order, parse_run_memory};
use crate::kept::Kept;
pub use crate::kept::SAVE_EVERY;
use crate::parquet;
use crate::scratch::{SharedMemory, TemporaryFile};
use crate::temporary::{MEMORY, Spaces};

/// How edges are read, and what becomes of them.
#[derive(Clone, Debug)]
pub struct IngestPlan {
    /// Whether edges have a direction.
    pub directed: bool,
    /// Whether edges have weights.
    pub weighted: bool,
    /// The format; `None` if its content and name say it.
    pub format: Option<InputFormat>,
    /// The names of columns in CSV and Parquet.
    pub columns: Option<Columns>,
    /// A file of vertices, which need not have edges.
    pub vertices: Option<PathBuf>,
    /// Edges between vertices that have one already.
    pub duplicates: Keep,
    /// Edges from a vertex to itself.
    pub loops: Keep,
    /// Memory for edges while they are sorted; more go to temporary files next to the store.
    pub memory: Bytes,
    /// The memory with which algorithms will run, if the state of the vertices may not fit.
    pub run_memory: Option<Bytes>,
    /// The order of vertices.
    pub order: Order,
    /// Whether an ingest that was interrupted is forgotten, and begins anew.
    pub restart: bool,
    /// Bytes of input after which progress is saved; [`SAVE_EVERY`] costs no time.
    pub save_every: Bytes,
}

/// Bytes that are read and parsed at once.
const PIECE: usize = 8 << 20;

impl IngestPlan {
    /// Makes the store `output` of the edges in a file, under a temporary name, and renames it when
    /// it is complete. A graph that is there is replaced.
    ///
    /// # Errors
    /// [`StoreError`]; then the store is as it was.
    pub fn make(
        &self,
        edges: &Path,
        output: &Path,
        pool: &dyn Pool,
        progress: &Progress,
    ) -> Result<Ingested, StoreError> {
        if output.as_os_str() == MEMORY {
            let what = "memory: a graph in memory ends with the command that made it, so it is \
                        made where an algorithm runs: prism graph run ALGORITHM memory --edges \
                        FILE (a file of this name is ./memory)";
            return Err(StoreError::Refused(what.into()));
        }
        let vertices = self.vertices.as_deref();
        refuse_same("the input", output, &[Some(edges), vertices])?;
        if !self.weighted && self.columns.as_ref().is_some_and(|columns| columns.weight.is_some()) {
            let what = "columns: the third one has weights; add --weighted, or leave it out";
            return Err(StoreError::Refused(what.into()));
        }
        // A link stays one.
        let store = &output.canonicalize().unwrap_or_else(|_| output.to_owned());
        if store.exists() {
            // Only a graph is replaced.
            drop(GraphDevice::open(store).map_err(|error| match error {
                StoreError::Refused(_) => StoreError::Refused(format!(
                    "{}: there is a file of this name, which is no store of a graph, so it is not \
                     replaced; name another one, or remove it",
                    output.display()
                )),
                error => error,
            })?);
        }
        let folder = match store.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        if !folder.is_dir() {
            let what = format!("{}: there is no folder to write it to", store.display());
            return Err(StoreError::Refused(what));
        }
        let shared = SharedMemory::new(self.memory.0);
        let (options, every) = (self.options(), self.save_every);
        let mut kept = Kept::begin(edges, store, options, self.restart, &shared, every)?;
        let made = self.make_at(edges, store, &folder, (&shared, &mut kept), pool, progress);
        let catalog = match (made, kept) {
            (Ok(catalog), kept) => {
                kept.into_iter().for_each(Kept::remove);
                catalog
            }
            (Err(error), Some(kept)) if error.is_lasting() => {
                kept.remove();
                return Err(error);
            }
            (Err(error), Some(kept)) => return Err(kept.keep(error)),
            (Err(error), None) => return Err(error),
        };
        Ok(Ingested::of(output, &catalog))
    }

    /// Makes the store under another name, and renames it.
    fn make_at(
        &self,
        edges: &Path,
        store: &Path,
        folder: &Path,
        (shared, kept): (&SharedMemory, &mut Option<Kept>),
        pool: &dyn Pool,
        progress: &Progress,
    ) -> Result<Catalog, StoreError> {
        let prepared = self.prepare(edges, folder, (shared, kept), pool, progress)?;
        let part = kept.as_ref().and_then(Kept::store).unwrap_or_else(|| part_of(store));
        // One that was interrupted may be there.
        let _ = std::fs::remove_file(&part);
        let _scratch = Scratch::at(&part);
        let names = (name_of(Some(edges)), name_of(Some(store)));
        let (device, catalog) = write(prepared, &names, pool, |bytes, vertices| {
            Ok(Box::new(GraphDevice::make(Some(&part), bytes, results_bytes(vertices))?))
        })?;
        drop(device);
        let failed =
            |error: std::io::Error| StoreError::Device(format!("{}: {error}", store.display()));
        std::fs::rename(&part, store).map_err(failed)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(catalog)
    }

    /// The options on which the graph depends, with their values.
    fn options(&self) -> Vec<(String, String)> {
        let yes = |given: bool| if given { "yes".to_owned() } else { String::new() };
        let keep = |keep: Keep| if keep == Keep::Keep { "keep" } else { "drop" }.to_owned();
        let columns = |columns: &Columns| {
            let weights = Columns::of_weights(Some(columns));
            format!("{},{},{weights}", columns.source, columns.target)
        };
        let all = [
            ("--directed", yes(self.directed)),
            ("--weighted", yes(self.weighted)),
            ("--format", self.format.map(InputFormat::name).unwrap_or_default().to_owned()),
            ("--columns", self.columns.as_ref().map(columns).unwrap_or_default()),
            ("--vertices", self.vertices.as_ref().map_or(String::new(), |p| name_of(Some(p)))),
            ("--duplicates", keep(self.duplicates)),
            ("--self-loops", keep(self.loops)),
            ("--run-memory", self.run_memory.map_or(String::new(), |bytes| bytes.0.to_string())),
            ("--order", self.order.name().to_owned()),
        ];
        all.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Reads edges and writes them to a device that `make` makes for this many bytes of graph, and
    /// vertices. Edges that do not fit into the memory of the plan are in files without a name in
    /// `folder`; nothing is kept if it is interrupted.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn ingest(
        &self,
        edges: &Path,
        folder: &Path,
        pool: &dyn Pool,
        progress: &Progress,
        make: impl FnOnce(u64, u64) -> Result<Box<dyn Spaces>, StoreError>,
    ) -> Result<(Box<dyn Spaces>, Catalog), StoreError> {
        let shared = SharedMemory::new(self.memory.0);
        let prepared = self.prepare(edges, folder, (&shared, &mut None), pool, progress)?;
        let names = (name_of(Some(edges)), MEMORY.to_owned());
        write(prepared, &names, pool, make)
    }

    /// Reads edges and sorts them into buckets.
    fn prepare(
        &self,
        edges: &Path,
        folder: &Path,
        (shared, kept): (&SharedMemory, &mut Option<Kept>),
        pool: &dyn Pool,
        progress: &Progress,
    ) -> Result<Prepared, StoreError> {
        let options = IngestOptions {
            directed: self.directed,
            weighted: self.weighted,
            duplicates: self.duplicates,
            loops: self.loops,
            state_memory: self.run_memory.map(|memory| memory.0 / 2),
            order: self.order,
        };
        let new = || Ok(Box::new(TemporaryFile::new(shared.clone(), folder)) as Box<_>);
        let name = name_of(Some(edges));
        let at = |error| StoreError::input(&name, error);
        let (parts, begun) = match kept {
            Some(kept) => (kept.parts(), kept.begun().cloned()),
            None => (
                [(); 3].map(|()| Box::new(TemporaryFile::new(shared.clone(), folder)) as Box<_>),
                None,
            ),
        };
        if let Some((_, saved)) = &begun {
            let edges = saved.edges(self.weighted);
            progress.note(&format!("going on from {edges} edges of {name}"));
        }
        let saved = begun.as_ref().map(|(_, saved)| *saved).unwrap_or_default();
        let mut ingest = Ingest::resume(options, &new, parts, saved).map_err(at)?;
        if !begun.is_some_and(|(place, _)| place.complete) {
            self.read(edges, progress, pool, &mut ingest, kept)?;
        }
        // The edges need not be read again when the vertices are right.
        let vertices = self.read_vertices(edges, &mut ingest);
        vertices.map_err(|error| match error.is_lasting() {
            true => StoreError::Vertices(error.to_string()),
            false => error,
        })?;
        ingest.prepare(pool).map_err(at)
    }

    fn read(
        &self,
        path: &Path,
        progress: &Progress,
        pool: &dyn Pool,
        ingest: &mut Ingest<'_>,
        kept: &mut Option<Kept>,
    ) -> Result<(), StoreError> {
        let format = match self.format {
            Some(InputFormat::Stream(format)) => Some(format),
            None if !parquet::is_parquet(path) => None,
            _ => {
                let columns = self.columns.as_ref();
                return parquet::read(path, columns, self.weighted, progress, ingest, kept);
            }
        };
        let is_empty = path.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
        if is_empty && self.vertices_of(path).is_some() {
            return Ok(());
        }
        let mut input = Input::open(path)?;
        input.read_once();
        progress.start_bytes("reading:", input.size());
        let name = input.name().to_owned();
        let mut piece = vec![0; PIECE.min(self.save_every.0.max(1) as usize)];
        let (mut reader, mut position) = self.begun(kept.as_ref(), &name, &mut input)?;
        loop {
            let whole = reader.as_ref().map_or(0, |reader| reader.whole_with(&[]));
            let bytes = input.read_full(&mut piece).map_err(|e| input.explain(e, whole))?;
            let mut reading = match reader.take() {
                Some(reading) => reading,
                None => self.reader(format, &name, &piece[..bytes])?,
            };
            let last = bytes < piece.len();
            if last {
                // A compressed input that is cut off or damaged fails after its last good bytes.
                let whole = reading.whole_with(&piece[..bytes]);
                input.read_full(&mut [0]).map_err(|e| input.explain(e, whole))?;
            }
            let read = reading.read(pool, &piece[..bytes], last, ingest);
            read.map_err(|error| StoreError::input(&name, error))?;
            if let Some(hint) = reading.take_hint() {
                progress.note(&format!("{name}: {hint}"));
            }
            position += bytes as u64;
            if let Some(kept) = kept {
                let (state, again) = reading.save();
                kept.reached(position - again as u64, 1, last, ingest, || Some(state))?;
            }
            reader = Some(reading);
            progress.reached(input.taken());
            if last {
                progress.clear();
                return Ok(());
            }
        }
    }

    /// The reader of an ingest that was interrupted, if it was, and the position from which it goes
    /// on.
    fn begun(
        &self,
        kept: Option<&Kept>,
        name: &str,
        input: &mut Input,
    ) -> Result<(Option<Reader>, u64), StoreError> {
        let Some((place, _)) = kept.and_then(Kept::begun) else { return Ok((None, 0)) };
        let Some(state) = place.reader.clone() else { return Ok((None, 0)) };
        let reader = Reader::resume(self.read_options(Format::Edges), state);
        let reader = reader.map(|reader| reader.map_err(|error| StoreError::input(name, error)));
        let skipped = input.skip(place.position).map_err(|error| input.explain(error, 0))?;
        match reader {
            Some(reader) if skipped == place.position => Ok((Some(reader?), skipped)),
            _ => {
                let what = "is shorter than when its ingest was interrupted; give --restart";
                Err(StoreError::Refused(format!("{name}: it {what}")))
            }
        }
    }

    fn read_options(&self, format: Format) -> ReadOptions {
        ReadOptions {
            format,
            directed: self.directed,
            weighted: self.weighted,
            columns: self.columns.clone(),
        }
    }

    fn reader(
        &self,
        format: Option<Format>,
        name: &str,
        head: &[u8],
    ) -> Result<Reader, StoreError> {
        let format = format.unwrap_or_else(|| Format::recognise(name, head));
        let reader = Reader::new(self.read_options(format));
        reader.map_err(|error| StoreError::input(name, error))
    }

    /// The file of vertices, if it is named or next to the edges.
    fn vertices_of(&self, edges: &Path) -> Option<PathBuf> {
        let next_to = edges.to_str().and_then(|name| {
            let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
            let name = name.strip_suffix(".e")?;
            let names = ["v", "v.gz", "v.zst"].map(|end| PathBuf::from(format!("{name}.{end}")));
            names.into_iter().find(|path| path.exists())
        });
        self.vertices.clone().or(next_to)
    }

    /// Reads the vertices, if there is a file of them.
    fn read_vertices(&self, edges: &Path, ingest: &mut Ingest<'_>) -> Result<(), StoreError> {
        let Some(path) = self.vertices_of(edges) else { return Ok(()) };
        let mut input = Input::open(&path)?;
        input.read_once();
        let (mut all, mut piece) = (Vec::new(), vec![0; PIECE]);
        loop {
            let lines = || all.iter().filter(|byte| **byte == b'\n').count() as u64;
            let bytes = input.read_full(&mut piece).map_err(|e| input.explain(e, lines()))?;
            all.extend_from_slice(&piece[..bytes]);
            if bytes == 0 {
                break;
            }
        }
        read_vertices(&all, ingest).map_err(|error| StoreError::input(input.name(), error))
    }
}

/// The name of a store, or of a folder of an ingest, that is not complete.
pub(crate) fn part_of(store: &Path) -> PathBuf {
    // Two processes or threads may make the same store: the last one to end replaces it.
    static MADE: AtomicU64 = AtomicU64::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let mut part = store.to_owned().into_os_string();
    part.push(format!(".{}-{number}.part", std::process::id()));
    part.into()
}

/// Writes a graph to a store that `make` makes for this many bytes of graph, and vertices. The
/// names of the edges and of the store are for messages.
fn write(
    prepared: Prepared,
    (edges, store): &(String, String),
    pool: &dyn Pool,
    make: impl FnOnce(u64, u64) -> Result<Box<dyn Spaces>, StoreError>,
) -> Result<(Box<dyn Spaces>, Catalog), StoreError> {
    let at = |error| match error {
        GraphError::Flash(_) | GraphError::NoSpace => StoreError::input(store, error),
        error => StoreError::input(edges, error),
    };
    let block = crate::device::block_bytes(prepared.bytes_max(1 << 20));
    let device = make(prepared.bytes_max(block), prepared.vertices())?;
    let (mut space, _) = device.graph(1).map_err(at)?;
    let catalog = prepared.write(&mut space, pool).map_err(at)?;
    drop(space);
    Ok((device, catalog))
}

/// What a store was made of, in the words of `prism graph ingest --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Ingested {
    /// The store.
    pub store: String,
    /// Vertices.
    pub vertices: u32,
    /// Edges that were kept.
    pub edges: u64,
    /// Edges of these from a vertex to itself.
    pub self_loops: u64,
    /// Edges that were left out because there was one between the same vertices.
    pub duplicates_dropped: u64,
    /// Edges from a vertex to itself that were left out.
    pub self_loops_dropped: u64,
    /// Bytes of the graph in the store.
    pub store_bytes: u64,
    /// Intervals of vertices.
    pub intervals: u32,
}

impl Ingested {
    fn of(store: &Path, catalog: &Catalog) -> Self {
        Self {
            store: store.display().to_string(),
            vertices: catalog.vertices,
            edges: catalog.edges,
            self_loops: catalog.loops,
            duplicates_dropped: catalog.duplicates,
            self_loops_dropped: catalog.loops_dropped,
            store_bytes: catalog.entries.iter().map(|entry| entry.bytes() as u64).sum(),
            intervals: catalog.intervals,
        }
    }
}

/// Bytes of results for a graph of this many vertices: two generations of eight bytes a vertex.
pub fn results_bytes(vertices: u64) -> u64 {
    2 * 8 * vertices + (1 << 20)
}
