//! Memory is a hard bound: an allocator counts what a thread holds.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use prism_graph::algorithms::{Algorithm, Column, Options};
use prism_graph::input::Format;
use prism_graph::pull::Schedule;
use prism_graph::rmat::Rmat;
use prism_graph::{GraphError, Keep, Results, Serial, Space};

use crate::common::{Input, options, policy, values};

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Counts bytes by thread.
struct Counting;

fn count(bytes: i64) {
    // A thread that ends has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most bytes that `work` holds at once, beyond those held before.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    PEAK.set(before);
    let result = work();
    (result, (PEAK.get() - before) as u64)
}

fn rmat(scale: u32) -> String {
    let edges = Rmat::new(scale, 3);
    edges.map(|edge| format!("{} {} {}\n", edge.source, edge.target, edge.source % 7)).collect()
}

#[test]
fn algorithms_stay_within_their_memory() {
    // The list of the last vertex takes several segments.
    let star: String = (0..30_000).map(|other| format!("9000000 {other} 0.1\n")).collect();
    let text = rmat(13) + &star;
    let cases = [(false, None), (true, None), (false, Some(48 * 8000)), (true, Some(48 * 8000))];
    for ((directed, state_memory), part) in cases.into_iter().zip(0..) {
        let input = Input {
            weighted: true,
            state_memory,
            ..Input::new(text.as_bytes(), Format::Edges, directed)
        };
        let mut graph = input.graph_with(1, 0);
        let source = Some(2);
        let options = Options { source, iterations: Some(3), ..options() };
        // Lists of segments and tasks are not counted.
        let lists = 400 * graph.catalog().entries.len() as u64 + (16 << 10);
        let pagerank = |schedule, single| (Algorithm::Pagerank, "pagerank", schedule, single);
        let (sync, at_once) = (Schedule::Synchronous, Schedule::Asynchronous);
        let all = Algorithm::ALL.map(|algorithm| (algorithm, algorithm.name(), sync, false));
        let others = [pagerank(sync, true), pagerank(at_once, false), pagerank(at_once, true)];
        for (algorithm, name, schedule, single) in all.into_iter().chain(others) {
            let options = Options { schedule, single, ..options };
            let mut ran = 0;
            // Each case has other sizes.
            for memory in (16 + 240 * part..6400).step_by(960).map(|kib| kib << 10) {
                graph.set_memory(memory);
                let (done, used) =
                    peak(|| algorithm.run(&mut graph, None, &Serial, &options).map(drop));
                match done {
                    Ok(()) => ran += 1,
                    Err(GraphError::Memory { .. } | GraphError::Refused(_)) => continue,
                    Err(error) => panic!("{name}: {error}"),
                }
                assert!(used <= memory + lists, "{name}: {used} bytes, {memory} allowed");
            }
            assert!(ran > 1, "{name} ran {ran} times");
        }
    }
}

/// The state does not fit: a round reads all edges once and all values as many times as there are
/// intervals, writes all values once, and its result is that of memory.
#[test]
fn values_on_flash_cost_what_the_design_says() {
    let text = rmat(13);
    let input =
        Input { state_memory: Some(48 * 2048), ..Input::new(text.as_bytes(), Format::Edges, true) };
    let mut graph = input.graph_with(1, 1 << 30);
    let intervals = u64::from(graph.catalog().intervals);
    assert!(intervals >= 3, "{intervals} intervals");
    let options = |rounds| Options { iterations: Some(rounds), ..options() };
    let whole = Algorithm::Pagerank.run(&mut graph, None, &Serial, &options(5)).unwrap();
    let vertices = graph.catalog().vertices;
    let memory = 176 << 10;
    assert!(u64::from(vertices) * 28 > memory);
    graph.set_memory(memory);
    let mut bytes = Vec::new();
    let mut stored_values = Vec::new();
    for rounds in [4, 5] {
        let (space, catalog) = Space::open(policy(128, 32, 1)).unwrap();
        let results = Results::open(space, catalog);
        let before = graph.io();
        let done = Algorithm::Pagerank.run(&mut graph, Some(results), &Serial, &options(rounds));
        let computed = done.unwrap();
        stored_values = values(vertices, &computed);
        let Column::Stored(stored) = &computed.column else { panic!("it is on flash") };
        let stored = stored.results.lock().unwrap();
        let io = graph.io();
        let edges = io.read + io.cached - before.read - before.cached;
        assert_eq!(stored.space().counts().copies, 0, "cleaning copies nothing");
        bytes.push((edges, stored.bytes().1));
    }
    assert_eq!(stored_values, values(vertices, &whole));
    let (edges, written) = (bytes[1].0 - bytes[0].0, bytes[1].1 - bytes[0].1);
    let arrays = 8 * u64::from(vertices);
    // The root and the rest of pages come on top.
    assert!(
        (arrays..arrays + 3 * (16 << 10)).contains(&written),
        "{written} written, {arrays} of values"
    );
    let all: u64 = graph.catalog().entries.iter().map(|entry| entry.bytes() as u64).sum();
    let lists = prism_graph::verify::bytes_of(graph.catalog(), prism_graph::segment::Kind::In);
    assert!(
        (lists..lists + lists / 2 + all / 4).contains(&edges),
        "{edges} read, {lists} of lists"
    );
}

/// With values on flash the lists of neighbours are in memory in parts: all of them do not fit.
#[test]
fn algorithms_stay_within_their_memory_with_values_on_flash() {
    let text: String =
        (0..160_000_u64).map(|i| format!("{} {}\n", i * 7919 % 15_013, i * i % 15_013)).collect();
    let (state_memory, duplicates) = (Some(48 * 2700), Keep::Keep);
    for directed in [false, true] {
        let input = Input {
            state_memory,
            duplicates,
            ..Input::new(text.as_bytes(), Format::Edges, directed)
        };
        let mut graph = input.graph_with(1, 0);
        let vertices = u64::from(graph.catalog().vertices);
        // Lists of segments and tasks are not counted.
        let lists = 400 * graph.catalog().entries.len() as u64 + (64 << 10);
        let (mut stores, mut ran) = (policy(256, 32, 1), 0);
        // The first run is so long that it writes every block of the device, which is in memory.
        let runs = [(Algorithm::Pagerank, "", 60)].into_iter();
        let runs = runs.chain(Algorithm::ALL.map(|algorithm| (algorithm, algorithm.name(), 2)));
        for (algorithm, name, iterations) in runs {
            let options = Options { source: Some(2), iterations: Some(iterations), ..options() };
            let (whole, least) = algorithm.state_bytes(&graph, &Serial, &options);
            let state = least + (40 << 10);
            if whole <= state {
                continue;
            }
            let memory = state + graph.buffers_min(&Serial);
            graph.set_memory(memory);
            let (space, catalog) = Space::open(stores).unwrap();
            let results = Results::open(space, catalog);
            let (done, used) = peak(|| algorithm.run(&mut graph, Some(results), &Serial, &options));
            let Column::Stored(stored) = done.unwrap().column else {
                panic!("{name} is in memory")
            };
            stores = stored.results.into_inner().unwrap().into_space().into_stores();
            let allowed = memory + lists;
            let of_neighbours = if directed { 8 } else { 4 } * graph.catalog().arcs;
            assert!(2 * allowed < of_neighbours + 16 * vertices, "all lists would fit");
            assert!(used <= allowed || name.is_empty(), "{name}: {used} bytes, {memory} allowed");
            ran += 1;
        }
        assert!(ran >= 5, "{ran} runs with values on flash");
    }
}
