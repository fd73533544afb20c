//! A request in the trace of a cache, and its encoding in `oracleGeneral` files and the oldest
//! `lcs` files.

use super::records::Fields;

/// A request of a file in any of the encodings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CacheRequest {
    pub time: u64,
    pub object: u64,
    pub size: u64,
    /// The operation as libCacheSim numbers them; 0 is unknown.
    pub operation: u64,
    pub tenant: Option<u64>,
}

/// Bytes of a record of oracleGeneral, and of the first version of lcs.
pub(super) const ORACLE_LEN: usize = 24;

/// A record of oracleGeneral.
pub(super) fn oracle_record(record: &[u8]) -> CacheRequest {
    let mut fields = Fields(record);
    let (time, object, size) = (fields.u32().into(), fields.u64(), fields.u32().into());
    CacheRequest { time, object, size, ..CacheRequest::default() }
}
