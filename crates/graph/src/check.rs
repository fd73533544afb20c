//! The content of a device is checked once, where it enters, so that no later code has to: a store
//! may be damaged, or have been changed on purpose, with right hashes.

use std::collections::BTreeSet;
use std::ops::Range;

use prism_segments::Shape;

use crate::catalog::{Catalog, Entry, VERSION, VERSION_OF_INPUT};
use crate::error::{GraphError, Result};
use crate::ingest::INTERVALS_MAX;
use crate::segment::{Adjacency, Kind, Slice};
use crate::space::Space;

/// The catalog of a space, if all that it says can be: its figures agree with each other, and its
/// segments are on the device, different, in order, and have every vertex once.
pub(crate) fn catalog(bytes: &[u8], space: &Space) -> Result<Catalog> {
    let root = space.root().unwrap_or(0);
    let damaged = |what| GraphError::Damaged { segment: root, what };
    let known = |version| matches!(version, VERSION | VERSION_OF_INPUT);
    if Catalog::version(bytes).is_some_and(|version| !known(version)) {
        let what = "its catalog is of another version of Prism; ingest the graph again";
        return Err(GraphError::Refused(what.into()));
    }
    let catalog = Catalog::decode(bytes).ok_or_else(|| damaged("it has no catalog"))?;
    figures(&catalog).map_err(damaged)?;
    let mut segments = BTreeSet::new();
    for entry in &catalog.entries {
        let segment = entry.segment;
        is_possible(&catalog, entry, space.shape())
            .map_err(|what| GraphError::Damaged { segment, what })?;
        if !segments.insert(segment) {
            let what = "the catalog names it twice";
            return Err(GraphError::Damaged { segment, what });
        }
    }
    if segments != *space.live() {
        return Err(damaged("its list of segments is not that of its catalog"));
    }
    covers(&catalog).map_err(damaged)?;
    Ok(catalog)
}

type Checked = std::result::Result<(), &'static str>;

/// `Err` with `what` unless `right`.
fn check(right: bool, what: &'static str) -> Checked {
    if right { Ok(()) } else { Err(what) }
}

/// Figures of a catalog that have to agree.
fn figures(catalog: &Catalog) -> Checked {
    let (vertices, per) = (u64::from(catalog.vertices), u64::from(catalog.interval_vertices));
    let intervals = u64::from(catalog.intervals);
    check(vertices > 0, "it has no vertices")?;
    let covers = per > 0 && vertices.div_ceil(per) == intervals && intervals <= INTERVALS_MAX;
    check(covers, "its intervals are not those of its vertices")?;
    let grouped: u64 = catalog.groups.iter().map(|group| u64::from(*group)).sum();
    let right = match catalog.version {
        VERSION => grouped == catalog.vertices.into() && intervals == 1,
        _ => catalog.groups.is_empty(),
    };
    check(right, "its groups are not those of its vertices")?;
    let arcs = match catalog.directed {
        true => Some(catalog.edges),
        false => catalog.edges.checked_mul(2).and_then(|both| both.checked_sub(catalog.loops)),
    };
    let right = arcs == Some(catalog.arcs) && catalog.loops <= catalog.edges;
    check(right, "its counts of edges do not agree")?;
    check(u64::from(catalog.degree_max) <= catalog.arcs, "its largest degree is too large")
}

/// Whether an entry alone can be.
fn is_possible(catalog: &Catalog, entry: &Entry, shape: Shape) -> Checked {
    check(entry.segment < shape.segments, "the device has no segment with this number")?;
    let fits = entry.bytes() <= shape.segment_bytes as usize;
    check(fits, "the catalog says that it is longer than a segment")?;
    let end = u64::from(entry.first) + u64::from(entry.vertices);
    check(end <= catalog.vertices.into(), "the catalog says that it has vertices that are not")?;
    // Each vertex has a byte at least, so that no count is larger than the device.
    let each = entry.vertices > 0 && entry.vertices <= entry.payload;
    check(each, "the catalog says that it has more vertices than bytes")?;
    match Kind::of(entry.kind) {
        Some(Kind::In | Kind::Out) => {
            let right = !entry.part || entry.vertices == 1;
            check(right, "the catalog says that it is a part of several vertices")
        }
        _ => check(entry.edges == 0 && !entry.part, "the catalog says that it has neighbours"),
    }
}

/// Whether the segments have every vertex, in each direction and each pair of intervals, and no
/// other segments are there.
fn covers(catalog: &Catalog) -> Checked {
    let vertices = catalog.vertices;
    let mut rest = &catalog.entries[..];
    let kinds: &[Kind] = if catalog.directed { &[Kind::In, Kind::Out] } else { &[Kind::In] };
    for kind in kinds {
        let mut arcs = 0;
        for row in 0..catalog.intervals {
            for column in 0..catalog.intervals {
                let group = Group { kind: *kind, column, vertices: catalog.interval(row) };
                arcs += group.take(&mut rest, catalog.degree_max)?;
            }
        }
        check(arcs == catalog.arcs, "the edges of its segments are not as many as it says")?;
    }
    let of_vertices = [Kind::Degrees, Kind::Ids, Kind::Groups];
    let with_groups = if catalog.groups.is_empty() { 2 } else { 3 };
    for kind in of_vertices.into_iter().take(with_groups) {
        Group { kind, column: 0, vertices: 0..vertices }.take(&mut rest, 0)?;
    }
    check(rest.is_empty(), "it names segments that the graph does not have")
}

/// Segments that follow each other and have some vertices once.
struct Group {
    kind: Kind,
    column: u32,
    vertices: Range<u32>,
}

impl Group {
    /// Takes the group from the front of `rest`; returns its edges.
    fn take(&self, rest: &mut &[Entry], degree_max: u32) -> std::result::Result<u64, &'static str> {
        let (mut at, mut edges, mut of_vertex) = (self.vertices.start, 0_u64, 0_u64);
        let mut before: Option<&Entry> = None;
        while let Some((entry, others)) = rest.split_first() {
            let same = (entry.kind, entry.column) == (self.kind as u32, self.column);
            let continues = |before: &Entry| before.part && entry.first == before.first;
            if same && entry.part && before.is_some_and(continues) {
                of_vertex += u64::from(entry.edges);
            } else if at == self.vertices.end {
                break;
            } else {
                // First and count were checked, so the sum is no larger than the vertices.
                let end = entry.first + entry.vertices;
                let right = same && entry.first == at && end <= self.vertices.end;
                check(right, "its segments do not have every vertex once, in order")?;
                (at, of_vertex) = (end, entry.edges.into());
            }
            let right = entry.vertices > 1 || of_vertex <= degree_max.into();
            check(right, "a vertex has more edges than the largest degree")?;
            edges += u64::from(entry.edges);
            (before, *rest) = (Some(entry), others);
        }
        check(at == self.vertices.end, "its segments do not have every vertex once, in order")?;
        Ok(edges)
    }
}

/// What the neighbours of a segment may be.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// The neighbours.
    pub(crate) neighbours: Range<u32>,
    /// The most neighbours of a vertex.
    pub(crate) degree_max: u32,
    /// Whether there are weights.
    pub(crate) weighted: bool,
    /// Whether they may be negative.
    pub(crate) negative: bool,
}

impl Limits {
    /// Those of a segment of a graph.
    pub(crate) fn of(catalog: &Catalog, entry: &Entry) -> Self {
        Self {
            neighbours: catalog.interval(entry.column),
            degree_max: catalog.degree_max,
            weighted: catalog.weighted,
            negative: catalog.negative,
        }
    }

    /// Whether lists are within these limits, ascend, and are as long as the degrees say.
    pub(crate) fn check(&self, lists: &Adjacency<'_>) -> Checked {
        let Range { start, end } = self.neighbours;
        let mut right = true;
        let (mut before, mut degree) = (start, 0);
        let whole = lists.for_each_slice(
            |_| (),
            |_, list, slice| {
                // Without a branch, so that several are compared at once.
                let pairs = list.iter().zip(list.get(1..).unwrap_or(&[]));
                right &= pairs.fold(true, |ascend, (one, next)| ascend & (one <= next));
                if let (Some(first), Some(last)) = (list.first(), list.last()) {
                    right &= before <= *first;
                    before = *last;
                }
                degree += list.len();
                if slice == Slice::Last {
                    right &= (degree == 0 || before < end) & (degree <= self.degree_max as usize);
                    (before, degree) = (start, 0);
                }
            },
        );
        check(whole, "its degrees do not fit its neighbours")?;
        check(right, "it has neighbours that the graph cannot have")?;
        let weighted = lists.header().weight_bytes > 0;
        check(weighted == self.weighted, "it has weights in a graph without, or none")?;
        let least = if self.negative { f64::NEG_INFINITY } else { 0.0 };
        let is_weight = |weight: f64| weight.is_finite() && weight >= least;
        check(lists.weights().all(is_weight), "it has weights that the graph cannot have")
    }
}
