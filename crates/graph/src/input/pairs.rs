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
    // One loop for each width: a copy of so few bytes costs more than the rest if its length is not
    // known when it is compiled.
    match format {
        Format::Pairs64 => read::<8>(weighted, bytes),
        _ => read::<4>(weighted, bytes),
    }
}

/// Edges of which a vertex has `N` bytes.
fn read<const N: usize>(weighted: bool, bytes: &[u8]) -> Result<Vec<Edge>, u64> {
    let record = 2 * N + if weighted { 4 } else { 0 };
    let number = |bytes: &[u8]| {
        let mut whole = [0; 8];
        whole[..N].copy_from_slice(&bytes[..N]);
        u64::from_le_bytes(whole)
    };
    let mut edges = Vec::with_capacity(bytes.len() / record);
    for (at, bytes) in bytes.chunks_exact(record).enumerate() {
        let weight = bytes[2 * N..].first_chunk().copied();
        let weight = weight.map_or(1.0, |bytes| f64::from(f32::from_le_bytes(bytes)));
        if !weight.is_finite() {
            return Err((at * record) as u64);
        }
        edges.push(Edge { source: number(bytes), target: number(&bytes[N..]), weight });
    }
    Ok(edges)
}
