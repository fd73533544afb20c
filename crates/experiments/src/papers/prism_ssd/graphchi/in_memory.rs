//! PageRank with the values of all vertices in memory: adjacency is read, and the result written
//! once.

use prism_flash::FlashError;

use super::sharder::word;
use super::volume::Volume;
use super::{BASE, Config, InEdges, Sharded, set};

/// Runs all iterations.
///
/// # Errors
/// [`FlashError`] if the device fails.
pub(in super::super) fn run(
    volume: &mut Volume,
    graph: &Sharded,
    config: &Config,
) -> Result<(), FlashError> {
    let all = *graph.bounds.last().expect("the end");
    // Of each vertex the share of its rank that goes along an edge; without edges from it the rank.
    let mut shares = vec![BASE; all as usize];
    let mut ranks = vec![0; all as usize * 4];
    for iteration in 0..config.iterations {
        for (shard, bounds) in graph.shards.iter().zip(graph.bounds.windows(2)) {
            volume.wait_for_writes()?;
            let vertices = bounds[0]..bounds[1];
            let degrees = u64::from(bounds[0]) * 8..u64::from(bounds[1]) * 8;
            let adjacency = (&shard.adjacency, 0..shard.adjacency.bytes());
            let read = volume.read(&[adjacency, (&graph.degrees, degrees)])?;
            let to = InEdges::new(read[0].content(), &vertices, all);
            if iteration > 0 {
                volume.pass(config.cpu.of(config.cpu.iterate, shard.edges));
            }
            for (number, vertex) in vertices.enumerate() {
                let degree = word(read[1].content(), number * 8 + 4);
                let each = if degree > 0 { degree as f32 } else { 1.0 };
                if iteration == 0 {
                    shares[vertex as usize] = if degree > 0 { 1.0 / each } else { BASE };
                } else {
                    let sum: f32 =
                        to.of(number).iter().map(|[_, source]| shares[*source as usize]).sum();
                    shares[vertex as usize] = (BASE + (1.0 - BASE) * sum) / each;
                }
                set(&mut ranks, vertex as usize, shares[vertex as usize] * each);
            }
        }
    }
    volume.replace(&graph.values, &ranks)?;
    volume.sync()
}
