//! Stores that were changed on purpose, with right hashes: every call ends with a result or an
//! error that says what is wrong, within its memory, and a result is that of the graph that the
//! store has, if the check finds no damage.

use prism_base::Rng;
use prism_graph::algorithms::Algorithm;
use prism_graph::catalog::Entry;
use prism_graph::input::Format;
use prism_graph::segment::{HEADER_BYTES, Header, Kind};
use prism_graph::{Catalog, Graph, GraphError, Keep, Order, Results, Serial, Space, verify};

use crate::common::{Input, by_id, ids, numbered, options};
use crate::memory::peak;
use crate::plain::{Plain, SEGMENT, SEGMENTS};

/// Bytes that computations may use.
const MEMORY: u64 = 1 << 20;
/// Bytes of memory that are a little more than those of the results and buffers.
const LITTLE: u64 = 34 << 10;

/// A graph and its results on a device.
#[derive(Clone)]
struct Image {
    graph: Plain,
    results: Plain,
}

type Answer<T> = Result<T, GraphError>;

impl Image {
    /// A graph with the results of a PageRank that was saved.
    fn new(input: &Input<'_>, memory: u64) -> Self {
        let image = Self { graph: Plain::default(), results: Plain::default() };
        let (mut space, _) = Space::open(image.graph.stores()).unwrap();
        input.ingest(&mut space, &Serial).unwrap();
        image.run(Algorithm::Pagerank, memory, Some(0)).unwrap();
        image
    }

    fn copy(&self) -> Self {
        Self { graph: self.graph.copy(), results: self.results.copy() }
    }

    fn open(&self, memory: u64) -> Answer<Graph> {
        let (space, catalog) = Space::open(self.graph.stores())?;
        Graph::open(space, catalog, memory)
    }

    fn results(&self) -> Answer<Results> {
        let (space, catalog) = Space::open(self.results.stores())?;
        Ok(Results::open(space, catalog))
    }

    /// The values of an algorithm by the numbers of the input, as text.
    fn run(&self, algorithm: Algorithm, memory: u64, source: Option<u64>) -> Answer<Vec<String>> {
        self.run_after(self.results()?, algorithm, memory, source)
    }

    /// The same, after the rounds that are in `results`.
    fn run_after(
        &self,
        results: Results,
        algorithm: Algorithm,
        memory: u64,
        source: Option<u64>,
    ) -> Answer<Vec<String>> {
        let mut graph = self.open(memory)?;
        let ranks = algorithm == Algorithm::Pagerank;
        let options = prism_graph::algorithms::Options {
            iterations: ranks.then_some(6),
            source: source.filter(|_| algorithm.has_source()),
            checkpoint: ranks.then_some(3),
            ..options()
        };
        let computed = algorithm.run(&mut graph, Some(results), &Serial, &options)?;
        let pairs = numbered(&mut graph)?;
        let text = |vertex: u32| computed.column.value(vertex, &|rank| pairs[rank as usize].1);
        let values = pairs.iter().map(|(vertex, id)| format!("{id} {}", text(*vertex))).collect();
        computed.column.check()?;
        Ok(values)
    }
}

/// A number that a field should not have, or might.
fn strange(rng: &mut Rng, old: u64) -> u64 {
    match rng.below(8) {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => old.wrapping_mul(2),
        4 => u32::MAX.into(),
        5 => u64::MAX,
        6 => rng.below(2 * (old % (1 << 40)) + 2),
        _ => rng.below(1 << 32),
    }
}

fn strange32(rng: &mut Rng, old: u32) -> u32 {
    strange(rng, old.into()) as u32
}

/// Changes an entry of a catalog, or the list of them.
fn change_entries(rng: &mut Rng, entries: &mut Vec<Entry>) {
    if entries.is_empty() {
        return;
    }
    let at = rng.below(entries.len() as u64) as usize;
    let other = rng.below(entries.len() as u64) as usize;
    match rng.below(13) {
        0 => entries.swap(at, other),
        1 => drop(entries.remove(at)),
        2 => entries.insert(at, entries[other]),
        3 => entries.clear(),
        4 => entries[at].part ^= true,
        5 => entries[at].kind = rng.below(8) as u32,
        6 => entries[at].segment = strange32(rng, entries[other].segment),
        7 => entries[at].segment = entries[other].segment,
        8 => entries[at].payload = strange32(rng, entries[at].payload),
        9 => entries[at].first = strange32(rng, entries[at].first),
        10 => entries[at].vertices = strange32(rng, entries[at].vertices),
        11 => entries[at].edges = strange32(rng, entries[at].edges),
        _ => entries[at].column = strange32(rng, entries[at].column),
    }
}

fn change_catalog(rng: &mut Rng, catalog: &mut Catalog) {
    match rng.below(24) {
        22 if !catalog.groups.is_empty() => {
            let [one, other] = [(); 2].map(|()| rng.below(catalog.groups.len() as u64) as usize);
            match rng.below(3) {
                0 => catalog.groups.swap(one, other),
                1 => catalog.groups[one] = strange32(rng, catalog.groups[other]),
                _ => drop(catalog.groups.remove(one)),
            }
        }
        23 => catalog.groups = vec![catalog.vertices],
        0 => catalog.version = strange32(rng, catalog.version),
        1 => catalog.directed ^= true,
        2 => catalog.weighted ^= true,
        3 => catalog.negative ^= true,
        4 => catalog.vertices = strange32(rng, catalog.vertices),
        5 => catalog.edges = strange(rng, catalog.edges),
        6 => catalog.loops = strange(rng, catalog.loops),
        7 => catalog.arcs = strange(rng, catalog.arcs),
        8 => catalog.degree_max = strange32(rng, catalog.degree_max),
        9 => catalog.intervals = strange32(rng, catalog.intervals),
        10 => catalog.interval_vertices = strange32(rng, catalog.interval_vertices),
        11 => {
            // One interval of all vertices, or as many as vertices.
            catalog.interval_vertices = if rng.below(2) == 0 { catalog.vertices } else { 1 };
            catalog.intervals = catalog.vertices.div_ceil(catalog.interval_vertices.max(1));
        }
        _ => change_entries(rng, &mut catalog.entries),
    }
}

/// The segment of the root, its list of segments and its catalog; `None` if it has been changed so
/// that it is none.
fn root(plain: &Plain) -> Option<(u32, Header, Vec<u32>, Vec<u8>)> {
    let (segment, header, payload) = plain
        .written()
        .into_iter()
        .filter(|(_, header, _)| header.kind == Kind::Root)
        .max_by_key(|(_, header, _)| header.generation)?;
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let (count, rest) = payload.split_at_checked(4)?;
    let (live, catalog) = rest.split_at_checked(4 * number(count) as usize)?;
    let live = live.chunks_exact(4).map(number).collect();
    Some((segment, header, live, catalog.to_vec()))
}

fn set_root(plain: &Plain, segment: u32, header: Header, live: &[u32], catalog: &[u8]) {
    let mut payload = (live.len() as u32).to_le_bytes().to_vec();
    live.iter().for_each(|segment| payload.extend_from_slice(&segment.to_le_bytes()));
    payload.extend_from_slice(catalog);
    payload.truncate(SEGMENT - HEADER_BYTES);
    plain.set(segment, header, &payload);
}

fn change_header(rng: &mut Rng, header: &mut Header) {
    match rng.below(9) {
        0 => header.kind = Kind::of(1 + rng.below(7) as u32).unwrap(),
        1 => header.generation = strange(rng, header.generation),
        2 => header.first = strange32(rng, header.first),
        3 => header.vertices = strange32(rng, header.vertices),
        4 => header.edges = strange32(rng, header.edges),
        5 => header.base = strange32(rng, header.base),
        6 => header.bits = rng.below(256) as u8,
        7 => header.weight_bytes = [0, 4, 8, 5][rng.below(4) as usize],
        _ => header.degree_bytes = strange32(rng, header.degree_bytes),
    }
}

fn change_bytes(rng: &mut Rng, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.below(bytes.len() as u64) as usize;
    match rng.below(6) {
        0 => bytes.truncate(at),
        1 => bytes[at] = 0xff,
        2 => drop(bytes.remove(at)),
        3 => bytes.extend_from_within(at..),
        4 => {
            let other = rng.below(bytes.len() as u64) as usize;
            bytes.swap(at, other);
        }
        _ => bytes[at] ^= 1 << rng.below(8),
    }
    bytes.truncate(SEGMENT - HEADER_BYTES);
}

/// Changes a segment; the catalog of a graph is made to say the same, sometimes.
fn change_segment(rng: &mut Rng, plain: &Plain, has_entries: bool) {
    let all = plain.written();
    let (segment, mut header, mut payload) = all[rng.below(all.len() as u64) as usize].clone();
    if rng.below(2) == 0 {
        change_header(rng, &mut header);
    } else {
        change_bytes(rng, &mut payload);
    }
    plain.set(segment, header, &payload);
    let agree = has_entries && header.kind != Kind::Root && rng.below(3) > 0;
    let Some((root_segment, root_header, live, catalog)) = root(plain) else { return };
    let Some(mut catalog) = Catalog::decode(&catalog).filter(|_| agree) else { return };
    for entry in &mut catalog.entries {
        if entry.segment == segment {
            entry.payload = payload.len() as u32;
            (entry.kind, entry.first) = (header.kind as u32, header.first);
            (entry.vertices, entry.edges) = (header.vertices, header.edges);
        }
    }
    set_root(plain, root_segment, root_header, &live, &catalog.encode());
}

/// One change of a store.
fn change(rng: &mut Rng, image: &Image) {
    let results = rng.below(6) == 0;
    let plain = if results { &image.results } else { &image.graph };
    let Some((segment, header, mut live, mut bytes)) = root(plain) else { return };
    match rng.below(10) {
        0 if !live.is_empty() => {
            let (at, other) = (rng.below(live.len() as u64) as usize, rng.below(450) as u32);
            match rng.below(3) {
                0 => drop(live.remove(at)),
                1 => live.push(other),
                _ => live[at] = strange32(rng, other),
            }
        }
        1 => change_bytes(rng, &mut bytes),
        2..=5 if !results => {
            let Some(mut catalog) = Catalog::decode(&bytes) else { return };
            let before: Vec<u32> = catalog.entries.iter().map(|entry| entry.segment).collect();
            change_catalog(rng, &mut catalog);
            let after: Vec<u32> = catalog.entries.iter().map(|entry| entry.segment).collect();
            if before != after && rng.below(2) == 0 {
                live = after;
            }
            bytes = catalog.encode();
        }
        _ => return change_segment(rng, plain, !results),
    }
    set_root(plain, segment, header, &live, &bytes);
}

/// What the edges of a graph are, as text, and the numbers of its vertices.
fn export(graph: &mut Graph) -> Answer<(String, String)> {
    let mut edges = String::new();
    verify::isolated(graph)?;
    verify::edges(graph, &mut |source, target, weight| {
        edges.push_str(&format!("{source} {target} {weight}\n"));
        Ok(())
    })?;
    let vertices = numbered(graph)?.iter().map(|(_, id)| format!("{id}\n")).collect();
    Ok((edges, vertices))
}

#[derive(Debug, Default)]
struct Outcomes {
    refused: u32,
    damaged: u32,
    /// Right but for the hash of the whole content.
    other: u32,
    clean: u32,
}

/// An error that says what is wrong with the store, or that it does not fit.
fn is_named(error: &GraphError) -> bool {
    use GraphError::{Damaged, Memory, NoRoot, NoVertex, Refused, Saved};
    let is_damage = matches!(error, Damaged { .. } | Saved { .. } | NoRoot(_));
    is_damage || matches!(error, Memory { .. } | NoVertex(_) | Refused(_))
}

/// Does everything with a store.
fn try_all(image: &Image, outcomes: &mut Outcomes) {
    let bound = MEMORY + 4 * (SEGMENTS * SEGMENT) as u64;
    let limited = |work: &dyn Fn() -> Answer<()>| {
        image.graph.begin();
        let (result, used) = peak(work);
        assert!(used <= bound, "{used} bytes in use");
        if let Err(error) = &result {
            assert!(is_named(error), "{error:?}");
        }
        result
    };
    let runs = |memory: u64| {
        Algorithm::ALL.map(|algorithm| {
            limited(&|| image.copy().run(algorithm, memory, Some(0)).map(drop)).is_ok()
        })
    };
    if limited(&|| image.open(MEMORY).map(drop)).is_err() {
        outcomes.refused += 1;
        assert_eq!((runs(MEMORY), runs(LITTLE)), ([false; 10], [false; 10]));
        return;
    }
    runs(MEMORY);
    runs(LITTLE);
    let exported = image.open(MEMORY).and_then(|mut graph| export(&mut graph));
    let mut graph = image.open(MEMORY).expect("it was opened");
    let report = verify::verify(&mut graph, &Serial).unwrap_or_else(|error| panic!("{error}"));
    match &report.damage[..] {
        [] => outcomes.clean += 1,
        // Nothing else is wrong: it is another graph, which all results have to agree about.
        [damage] if damage == verify::OTHER_CONTENT => outcomes.other += 1,
        _ => {
            outcomes.damaged += 1;
            return;
        }
    }
    let (edges, vertices) = exported.unwrap_or_else(|error| panic!("{error}, and no damage"));
    compare(image, graph.catalog(), &edges, &vertices);
}

/// A store without damage has the results of the graph that it has.
fn compare(image: &Image, catalog: &Catalog, edges: &str, vertices: &str) {
    let input = Input {
        vertices: vertices.as_bytes(),
        weighted: catalog.weighted,
        duplicates: Keep::Keep,
        ..Input::new(edges.as_bytes(), Format::Edges, catalog.directed)
    };
    let mut again = input.graph_with(1, MEMORY);
    let figures = |catalog: &Catalog| {
        let Catalog { vertices, edges, loops, arcs, degree_max, negative, .. } = *catalog;
        (vertices, edges, loops, arcs, degree_max, negative && catalog.weighted)
    };
    assert_eq!(figures(again.catalog()), figures(catalog));
    let first = ids(&mut again).first().copied();
    for algorithm in Algorithm::ALL {
        let name = algorithm.name();
        // Sums depend on the order of intervals.
        if matches!(algorithm, Algorithm::Pagerank | Algorithm::Ppr) {
            continue;
        }
        let source = first.filter(|_| algorithm.has_source());
        let options = prism_graph::algorithms::Options { source, ..options() };
        let wanted = algorithm.run(&mut again, None, &Serial, &options);
        let found = image.copy().run(algorithm, MEMORY, source);
        let (Ok(wanted), Ok(found)) = (&wanted, &found) else {
            assert!(wanted.is_err() && found.is_err(), "{name}: {found:?}");
            continue;
        };
        let wanted = by_id(&mut again, wanted);
        let wanted: Vec<String> =
            wanted.iter().map(|(id, value)| format!("{id} {value}")).collect();
        assert_eq!(*found, wanted, "{name}");
    }
}

/// Small stores of every kind.
fn images() -> Vec<Image> {
    let mut rng = Rng::stream(1, "graphs");
    let mut line = |spread: u64| {
        let (a, b) = (rng.below(spread), rng.below(spread) * 3 % spread);
        format!("{a} {b} {}\n", rng.below(40) as f64 / 8.0)
    };
    let text: String = (0..900).map(|_| line(300)).collect();
    // The list of 0 takes several segments.
    let star: String = (1..1500).map(|other| format!("0 {other} 0.1\n")).collect();
    let mut images = Vec::new();
    for (edges, directed, weighted, state_memory, order) in [
        (&text, false, false, None, Order::Degree),
        (&text, true, false, None, Order::Degree),
        (&text, true, false, None, Order::Input),
        (&text, true, true, Some(48 * 70), Order::Degree),
        (&star, false, true, None, Order::Degree),
        (&star, true, false, Some(48 * 400), Order::Degree),
    ] {
        let input = Input {
            weighted,
            state_memory,
            order,
            duplicates: if directed { Keep::Keep } else { Keep::Drop },
            ..Input::new(edges.as_bytes(), Format::Edges, directed)
        };
        images.push(Image::new(&input, MEMORY));
        if state_memory.is_some() {
            images.push(Image::new(&input, LITTLE));
        }
    }
    images
}

#[test]
fn random_changes_with_right_hashes_are_found_or_are_another_graph() {
    let images = images();
    let mut untouched = Outcomes::default();
    images.iter().for_each(|image| try_all(image, &mut untouched));
    assert_eq!(untouched.clean as usize, images.len(), "{untouched:?}");
    let mut outcomes = Outcomes::default();
    let mut cases = 0;
    for seed in prism_testkit::seeds(0..100) {
        for (number, image) in images.iter().enumerate() {
            let mut rng = Rng::stream(seed, &format!("changes {number}"));
            let image = image.copy();
            for _ in 0..=rng.below(2) {
                change(&mut rng, &image);
            }
            try_all(&image, &mut outcomes);
            cases += 1;
        }
    }
    if cases >= 700 {
        let Outcomes { refused, damaged, other, clean } = outcomes;
        assert!(refused > cases / 4 && damaged > cases / 8, "{outcomes:?}");
        assert!(other > 0 && clean > cases / 50, "{outcomes:?}");
    }
}

/// A saved result that was changed is found by the check, and a run does not use it.
#[test]
fn a_changed_result_is_found_and_not_used() {
    let text: String = (0..900).map(|at| format!("{at} {}\n", at * 7 % 901)).collect();
    let image = Image::new(&Input::new(text.as_bytes(), Format::Edges, true), MEMORY);
    let results = |image: &Image| image.results().unwrap();
    assert_eq!(results(&image).verify(), [""; 0]);
    let wanted = image.copy().run(Algorithm::Pagerank, MEMORY, None).unwrap();
    let (segment, header, live, catalog) = root(&image.results).unwrap();
    let changed = image.copy();
    // The vertices of the last part are others.
    let mut bytes = catalog.clone();
    let at = bytes.len() - 8;
    bytes[at] ^= 1;
    set_root(&changed.results, segment, header, &live, &bytes);
    assert_eq!(results(&changed).verify().len(), 1);
    assert_eq!(changed.run(Algorithm::Pagerank, MEMORY, None).unwrap(), wanted);
    let changed = image.copy();
    let (at, header, mut payload) =
        changed.results.written().into_iter().find(|(at, ..)| *at == live[0]).unwrap();
    payload.truncate(100);
    changed.results.set(at, header, &payload);
    let damage = results(&changed).verify();
    assert!(damage.len() == 1 && damage[0].contains("--restart"), "{damage:?}");
    let error = changed.run(Algorithm::Pagerank, MEMORY, None).unwrap_err();
    assert!(matches!(error, GraphError::Saved { segment, .. } if segment == live[0]), "{error}");
    let mut anew = results(&changed);
    anew.forget();
    let again = changed.run_after(anew, Algorithm::Pagerank, MEMORY, None).unwrap();
    assert_eq!(again, wanted);
    assert_eq!(results(&changed).verify(), [""; 0]);
}

/// Numbers of vertices agree with nothing else in the store, so that only the hash of the whole
/// content shows that they were changed.
#[test]
fn a_number_of_the_input_that_was_changed_is_found() {
    for state_memory in [None, Some(48 * 2)] {
        let input =
            Input { state_memory, ..Input::new(b"10 12\n12 20\n20 40\n", Format::Edges, true) };
        let image = Image::new(&input, MEMORY);
        let check = |image: &Image| {
            let mut graph = image.open(MEMORY).unwrap();
            verify::verify(&mut graph, &Serial).unwrap().damage
        };
        assert_eq!(check(&image), [""; 0]);
        let all = image.graph.written();
        let ids = all.into_iter().find(|(_, header, _)| header.kind == Kind::Ids).unwrap();
        let (segment, header, mut payload) = ids;
        assert_eq!(payload, [10, 2, 8, 20]);
        payload[3] += 1;
        image.graph.set(segment, header, &payload);
        assert_eq!(check(&image), [verify::OTHER_CONTENT]);
    }
}

/// What a segment with a right hash can do at most: a neighbour that is no vertex.
#[test]
fn a_neighbour_that_is_no_vertex_is_named() {
    let input = Input::new(b"0 1\n1 2\n2 3\n3 4\n", Format::Edges, true);
    let image = Image::new(&input, MEMORY);
    let lists = image.graph.written();
    let (segment, mut header, payload) =
        lists.into_iter().find(|(_, header, _)| header.kind == Kind::In).unwrap();
    header.base += 4;
    image.graph.set(segment, header, &payload);
    for algorithm in Algorithm::ALL {
        let name = algorithm.name();
        let unsaved = Image { results: Plain::default(), ..image.copy() };
        let error = match unsaved.run(algorithm, MEMORY, Some(0)) {
            // These read other segments.
            Ok(_) if matches!(name, "degrees" | "bfs" | "sssp") => continue,
            Ok(values) => panic!("{name}: {values:?}"),
            Err(error) => error,
        };
        let text = error.to_string();
        let wanted = format!("segment {segment} is damaged: it has neighbours that");
        assert!(text.starts_with(&wanted), "{name}: {text}");
    }
    let mut graph = image.open(MEMORY).unwrap();
    let report = verify::verify(&mut graph, &Serial).unwrap();
    assert_eq!(report.damage.len(), 1, "{report:?}");
}
