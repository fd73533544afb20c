//! Binary edges: source and target, little-endian, and perhaps a weight as `f32`, as those of
//! GridGraph and X-Stream.

use super::Format;
use crate::ingest::Edge;

/// Bytes of an edge.
pub(crate) fn record(format: Format, weighted: bool) -> usize {
    let pair = if format == Format::Pairs64 { 16 } else { 8 };
    pair + if weighted { 4 } else { 0 }
}

/// The edges; the byte at which one begins of which the weight is no finite number, else.
pub(crate) fn edges(format: Format, weighted: bool, bytes: &[u8]) -> Result<Vec<Edge>, u64> {
    let record = record(format, weighted);
    let mut edges = Vec::with_capacity(bytes.len() / record);
    for (at, bytes) in bytes.chunks_exact(record).enumerate() {
        let (pair, weight) = bytes.split_at(record - if weighted { 4 } else { 0 });
        let (source, target) = pair.split_at(pair.len() / 2);
        let number = |bytes: &[u8]| {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(whole)
        };
        let weight = weight.try_into().map_or(1.0, |bytes| f64::from(f32::from_le_bytes(bytes)));
        if !weight.is_finite() {
            return Err((at * record) as u64);
        }
        edges.push(Edge { source: number(source), target: number(target), weight });
    }
    Ok(edges)
}
