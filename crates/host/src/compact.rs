//! Tests of records as a fixed number of bytes.

use prism_testkit::cases;
use prism_trace::compact::{RECORD_BYTES, decode, encode};
use prism_trace::{Flags, Op, OptTime, Record, Symbol};
use proptest::prelude::*;

/// Any record at all, extreme values included.
pub(crate) fn any_record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![Just(OptTime::UNKNOWN), any::<i64>().prop_map(OptTime::at)];
    let wide = (any::<u64>(), any::<u64>(), any::<u64>());
    let symbols = any::<[u32; 4]>();
    let small = (any::<i32>(), any::<u16>(), any::<u16>(), 0..Op::ALL.len(), any::<u8>());
    (time.clone(), any::<i64>(), time, wide, symbols, small).prop_map(
        |(queue, issue_ns, complete, wide, symbols, (pid, stream, flags, op, hint))| Record {
            queue,
            complete,
            inode: wide.2,
            device: Symbol(symbols[0]),
            comm: Symbol(symbols[1]),
            file: Symbol(symbols[2]),
            phase: Symbol(symbols[3]),
            pid,
            stream,
            flags: Flags(flags),
            hint,
            ..Record::new(Op::ALL[op], issue_ns, wide.0, wide.1)
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]
    #[test]
    fn random_records_are_read_as_written(record in any_record()) {
        let mut bytes = Vec::new();
        encode(&record, &mut bytes);
        prop_assert_eq!(bytes.len(), RECORD_BYTES);
        prop_assert_eq!(decode(&bytes), Some(record));
    }
}

#[test]
fn an_operation_that_does_not_exist_is_seen() {
    let mut bytes = Vec::new();
    encode(&Record::new(Op::Flush, 0, 0, 0), &mut bytes);
    bytes[72] = Op::ALL.len() as u8;
    assert_eq!(decode(&bytes), None);
}
