//! Values of vertices on flash: checkpoints between rounds, and the state of computations of which
//! it does not fit into memory.
//!
//! Each round is a generation of the space of results: its segments are written, the root commits
//! them, and only then those of the round before are freed, all of them.

use std::collections::BTreeSet;
use std::ops::Range;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::error::{GraphError, Result};
use crate::pull::Totals;
use crate::segment::{HEADER_BYTES, Header, Kind};
use crate::space::Space;

/// The catalog of a generation.
#[derive(Clone, Debug, PartialEq, BorshSerialize, BorshDeserialize)]
struct Generation {
    /// The content of the graph.
    graph: u64,
    /// The algorithm and those options on which values depend.
    key: String,
    round: u32,
    totals: Totals,
    parts: Vec<Part>,
}

/// A segment of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Part {
    segment: u32,
    payload: u32,
    first: u32,
    count: u32,
}

impl Part {
    /// The header that the segment has to have.
    fn header(&self) -> Header {
        Header { payload: self.payload, ..Header::plain(Kind::Values, self.first, self.count) }
    }
}

impl Generation {
    /// Whether its parts have values of consecutive vertices from 0 on, and are those of the root.
    fn is_possible(&self, space: &Space) -> bool {
        let mut segments = BTreeSet::new();
        let mut end = Some(0_u32);
        for part in &self.parts {
            let follows = end == Some(part.first) && part.count > 0;
            let bytes = u64::from(part.count) * VALUE as u64;
            if !follows || bytes != part.payload.into() || !segments.insert(part.segment) {
                return false;
            }
            end = part.first.checked_add(part.count);
        }
        end.is_some() && segments == *space.live()
    }
}

/// Bytes of a value.
const VALUE: usize = 8;

/// The values of the last complete round.
pub struct Results {
    space: Space,
    current: Option<Generation>,
    /// Whether there was a catalog that cannot be.
    is_damaged: bool,
    /// The next round: its parts, and values that are not written.
    next: Vec<Part>,
    first: u32,
    pending: Vec<u8>,
    /// The part that was read last.
    cached: Option<(Part, Vec<u8>)>,
    read: u64,
    /// The saved round that a computation was given.
    resumed_after: Option<u32>,
}

impl Results {
    /// Those of a space that was opened, with its catalog. One that cannot be is as none: then a
    /// computation begins anew.
    #[must_use]
    pub fn open(space: Space, catalog: Option<Vec<u8>>) -> Self {
        let read = |bytes: &Vec<u8>| Generation::try_from_slice(bytes).ok();
        let current = catalog.as_ref().and_then(read);
        let current = current.filter(|current| current.is_possible(&space));
        Self {
            space,
            is_damaged: catalog.is_some() && current.is_none(),
            current,
            next: Vec::new(),
            first: 0,
            pending: Vec::new(),
            cached: None,
            read: 0,
            resumed_after: None,
        }
    }

    /// The round that is there of this computation, which goes on after it, and its totals; none
    /// after the round `last`.
    pub fn round(&mut self, graph: u64, key: &str, last: u32) -> Option<(u32, Totals)> {
        self.resumed_after = None;
        let current = self.current.as_ref()?;
        let is_of_it = current.graph == graph && current.key == key && current.round <= last;
        // Round 0 is of initial values, which took no round.
        self.resumed_after = Some(current.round).filter(|round| is_of_it && *round > 0);
        is_of_it.then_some((current.round, current.totals))
    }

    /// The round after which the computation went on, if an earlier one had saved it.
    #[must_use]
    pub fn resumed_after(&self) -> Option<u32> {
        self.resumed_after
    }

    /// Leaves out what is there: a computation begins anew, and its first commit frees the rest.
    pub fn forget(&mut self) {
        (self.current, self.cached) = (None, None);
    }

    /// Reads all saved values; returns everything that is wrong, a sentence each.
    pub fn verify(&mut self) -> Vec<String> {
        let mut damage = Vec::new();
        if self.is_damaged {
            damage.push("the catalog of the saved result is damaged; it is not used".to_owned());
        }
        for part in self.current.iter().flat_map(|current| &current.parts) {
            if let Err(error) = self.space.read(part.segment, part.header()) {
                damage.push(saved(error).to_string());
            }
        }
        damage
    }

    /// Bytes that were read and written.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.read, self.space.written())
    }

    /// The space.
    #[must_use]
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// The space, to open it again.
    #[must_use]
    pub fn into_space(self) -> Space {
        self.space
    }

    /// Adds the value of the next vertex to the next round.
    ///
    /// # Errors
    /// As [`Space::write`].
    pub fn push(&mut self, value: u64) -> Result<()> {
        self.pending.extend_from_slice(&value.to_le_bytes());
        let capacity = self.space.capacity() - HEADER_BYTES;
        if self.pending.len() + VALUE > capacity { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let count = (self.pending.len() / VALUE) as u32;
        if count == 0 {
            return Ok(());
        }
        let header = Header::plain(Kind::Values, self.first, count);
        let segment = self.space.write(header, &self.pending)?;
        let (payload, first) = (self.pending.len() as u32, self.first);
        self.next.push(Part { segment, payload, first, count });
        self.first += count;
        self.pending.clear();
        Ok(())
    }

    /// Makes the values that were pushed those of `round`; returns when that is durable.
    ///
    /// # Errors
    /// As [`Space::commit`]; then the round before is still there.
    pub fn commit(&mut self, graph: u64, key: &str, round: u32, totals: Totals) -> Result<()> {
        self.flush()?;
        let parts = std::mem::take(&mut self.next);
        self.first = 0;
        self.cached = None;
        let live: Vec<u32> = parts.iter().map(|part| part.segment).collect();
        let next = Generation { graph, key: key.to_owned(), round, totals, parts };
        let catalog = borsh::to_vec(&next).expect("memory takes any bytes");
        self.space.commit(&catalog, &live)?;
        self.current = Some(next);
        Ok(())
    }

    /// Passes the values of these vertices in the current round to `take`.
    ///
    /// # Errors
    /// [`GraphError::Saved`] if they are not there; as [`Space::read`].
    pub fn values(
        &mut self,
        Range { start, end }: Range<u32>,
        mut take: impl FnMut(u32, u64),
    ) -> Result<()> {
        let mut at = start;
        while at < end {
            let bytes = self.part(at)?;
            let Some((part, bytes)) = bytes else {
                let what = "it has no values of some vertices";
                return Err(GraphError::Saved { segment: self.space.root().unwrap_or(0), what });
            };
            let until = end.min(part.first + part.count);
            let values = bytes[(at - part.first) as usize * VALUE..].chunks_exact(VALUE);
            for (vertex, value) in (at..until).zip(values) {
                take(vertex, u64::from_le_bytes(value.try_into().expect("eight")));
            }
            at = until;
        }
        Ok(())
    }

    /// What `of` makes of the values of these vertices in the current round.
    ///
    /// # Errors
    /// As [`Results::values`].
    pub(crate) fn collect<T>(
        &mut self,
        range: Range<u32>,
        of: impl Fn(u64) -> T,
    ) -> Result<Vec<T>> {
        let mut values = Vec::with_capacity(range.len());
        self.values(range, |_, value| values.push(of(value)))?;
        Ok(values)
    }

    /// The part with a vertex.
    fn part(&mut self, vertex: u32) -> Result<Option<(Part, &[u8])>> {
        let has = |part: &Part| (part.first..part.first + part.count).contains(&vertex);
        if !self.cached.as_ref().is_some_and(|(part, _)| has(part)) {
            // Parts follow each other.
            let parts = self.current.as_ref().map_or(&[][..], |current| &current.parts);
            let at = parts.partition_point(|part| part.first + part.count <= vertex);
            let Some(part) = parts.get(at).copied() else { return Ok(None) };
            let bytes = self.space.read(part.segment, part.header()).map_err(saved)?;
            self.read += u64::from(part.payload);
            self.cached = Some((part, bytes));
        }
        Ok(self.cached.as_ref().map(|(part, bytes)| (*part, &bytes[..])))
    }
}

/// The failure of a read of the space of results.
fn saved(error: GraphError) -> GraphError {
    match error {
        GraphError::Damaged { segment, what } => GraphError::Saved { segment, what },
        other => other,
    }
}
