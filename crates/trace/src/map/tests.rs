//! Maps: those that are shipped, the one in the document, and the errors of wrong ones.

use super::*;
use crate::testing::{self, Parsed};

const DOCUMENT: &str = include_str!("../../../../docs/spec/trace-map.md");

fn run(map: &str, text: &str) -> (MapParser, Parsed) {
    let mut parser = MapParser::new(map).expect("a right map");
    let parsed = testing::parse(&mut parser, text);
    (parser, parsed)
}

/// The text of the block fenced as `kind` in the document.
fn block(kind: &str) -> &'static str {
    let start = DOCUMENT.find(&format!("```{kind}\n")).expect("in the document");
    let body = &DOCUMENT[start + kind.len() + 4..];
    &body[..body.find("```").expect("the block ends")]
}

#[test]
fn the_example_of_the_document_works() {
    let (parser, parsed) = run(block("toml map"), block("text trace"));
    let expected: Vec<&str> = block("text records").lines().skip(1).collect();
    assert_eq!(parsed.lines(), expected);
    assert_eq!(parsed.skips, []);
    let capabilities = parser.capabilities();
    assert!(capabilities.discard && capabilities.flush && capabilities.completion);
    assert!(!capabilities.write_zeroes && !capabilities.fua && !capabilities.file);
    assert_eq!(capabilities.clock_ns, 1_000);
    assert_eq!(parsed.symbols.name(parsed.records[2].comm), "backup");
}

#[test]
fn systor17_is_read_in_order_of_issue() {
    let map = include_str!("../../../../samples/maps/systor17.toml");
    let (parser, parsed) = run(map, include_str!("../../tests/data/systor17.csv"));
    assert_eq!(
        parsed.lines(),
        [
            "0 ? write 4096 8192 1",
            "1000 6476000 read 203468398592 32768 0",
            "100001000 100002000 write 0 512 0",
        ]
    );
    assert_eq!(parsed.skips, [(NO_OPERATION.0, 1, 5)]);
    assert_eq!(parser.capabilities().clock_ns, 1_000);
    assert_eq!(parser.disorder_ns(), 30_000_000_000);
}

#[test]
fn bpftrace_output_is_read_from_its_completions() {
    let map = include_str!("../../../../samples/maps/bpftrace-bio.toml");
    let (_, parsed) = run(map, include_str!("../../tests/data/bpftrace-bio.csv"));
    assert_eq!(parsed.records.len(), 38);
    assert_eq!(parsed.skips, []);
    let first = parsed.records[0];
    assert_eq!((first.op, first.flags), (Op::Read, Flags::READAHEAD));
    assert_eq!((first.offset, first.len, first.pid), (12_581_000 * 512, 4096, 31950));
    assert_eq!((first.issue_ns, first.complete), (0, OptTime::at(176_378)));
    assert_eq!(parsed.symbols.name(first.comm), "df");
    assert_eq!(parsed.symbols.name(first.device), "254:0");
}

const SMALL: &str = r#"
delimiter = "whitespace"
[columns]
issue = { column = 1, unit = "filetime" }
rwbs = { column = 2 }
offset = { column = 3, unit = "512B" }
length = { column = 4, unit = "512B" }
fua = { column = 5, words = ["1", "yes"] }
"#;

#[test]
fn letters_and_flags() {
    let check = |letters: &str, expected: Option<(Op, Flags)>| {
        assert_eq!(super::letters(letters.as_bytes()), expected, "{letters}");
    };
    check("R", Some((Op::Read, Flags::NONE)));
    check("RAM", Some((Op::Read, Flags::READAHEAD.with(Flags::META))));
    let all = Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).with(Flags::META);
    check("FWFSM", Some((Op::Write, all)));
    check("FF", Some((Op::Flush, Flags::NONE)));
    check("FN", Some((Op::Flush, Flags::NONE)));
    check("DS", Some((Op::Discard, Flags::SYNC)));
    check("NS", Some((Op::WriteZeroes, Flags::SYNC)));
    check("", None);
    check("X", None);
    check("W?", None);
    let text = "116444736000000000 W 8 8 yes\n116444736000000000 FF x x 0\n";
    let (_, parsed) = run(SMALL, text);
    assert_eq!(parsed.lines(), ["0 ? write 4096 4096", "0 ? flush 0 0"]);
    assert_eq!(parsed.records[0].flags, Flags::FUA);
    assert_eq!(parsed.records[1].flags, Flags::NONE);
}

#[test]
fn a_regular_expression_cuts_what_no_delimiter_can() {
    let map = r#"
        regex = 'at (?<t>[0-9.]+)s: (?<op>\w+) "(?<file>[^"]*)" \[(\d+),(\d+)\]'
        [columns]
        issue = { column = "t", unit = "s" }
        operation = { column = "op" }
        file = { column = "file" }
        offset = { column = 4, unit = "bytes" }
        length = { column = 5, unit = "KiB" }
        [operations]
        read = ["get", "load"]
        write_zeroes = ["zero"]
    "#;
    let text = "noise\nat 1.5s: load \"a, b\" [4096,4]\nat 2.25s: zero \"c\" [0,1]\n";
    let (parser, parsed) = run(map, text);
    assert_eq!(parsed.lines(), ["0 ? read 4096 4096  a, b", "750000000 ? write_zeroes 0 1024  c"]);
    assert_eq!(parsed.skips, [(NO_MATCH.0, 1, 1)]);
    assert_eq!(parser.capabilities().clock_ns, 10_000_000);
}

#[test]
fn a_regular_expression_passes_over_bytes_that_are_not_utf8() {
    let map = r#"
        regex = '^(?<t>\d+) (?<op>\w+) (?<at>\d+) (?<bytes>\d+) name=.*$'
        [columns]
        issue = { column = "t", unit = "ns" }
        operation = { column = "op" }
        offset = { column = "at", unit = "bytes" }
        length = { column = "bytes", unit = "bytes" }
        [operations]
        write = ["W"]
    "#;
    let mut parser = MapParser::new(map).expect("a right map");
    let mut sink = Sink::new(0);
    // The e of this name has its accent in Latin-1, which is no UTF-8.
    parser.line(b"7 W 4096 512 name=caf\xe9", 1, &mut sink).expect("readable");
    let mut records = Vec::new();
    sink.drain(true, &mut records);
    assert_eq!(records.len(), 1, "the line is not skipped");
}

#[test]
fn empty_fields_between_tabs_stay_fields() {
    let map = SMALL.replace("whitespace", "\\t");
    let (_, parsed) = run(&map, "116444736000000000\tR\t0\t1\t\r\n\tR\t0\t1\t\n");
    assert_eq!(parsed.lines(), ["0 ? read 0 512"]);
    assert_eq!(parsed.skips, [(NOT_A_NUMBER.0, 1, 2)]);
}

#[test]
fn every_kind_of_damage_has_its_reason() {
    let check = |line: &str, reason: SkipReason| {
        let (_, parsed) = run(SMALL, line);
        assert_eq!(parsed.skips, [(reason.0, 1, 1)], "{line}");
    };
    check("116444736000000000 W 8 8", WRONG_FIELDS);
    check("116444736000000000 Q 8 8 1", UNKNOWN_OP);
    check("yesterday W 8 8 1", NOT_A_NUMBER);
    check("116444736000000000 W 8 0 1", crate::fields::ZERO_LENGTH);
    check("116444736000000000 W 36028797018963967 8 1", OUT_OF_RANGE);
}

#[test]
fn a_header_without_the_column_says_what_it_has() {
    let map = include_str!("../../../../samples/maps/bpftrace-bio.toml");
    let mut parser = MapParser::new(map).unwrap();
    parser.line(b"Attaching 5 probes...", 1, &mut Sink::new(0)).unwrap();
    let error = parser.line(b"a,b", 2, &mut Sink::new(0)).unwrap_err();
    assert!(matches!(&error, TraceError::Bad { line: 2, .. }));
    assert!(error.to_string().contains("no column \"ts_ns\""), "{error}");
    assert!(error.to_string().contains("it has: a, b"), "{error}");
}

#[test]
fn wrong_maps_name_the_field_and_what_is_allowed() {
    let check = |from: &str, to: &str, line: u64, message: &str| {
        let map = SMALL.replacen(from, to, 1);
        assert_ne!(map, SMALL, "{from}");
        let error = MapParser::new(&map).expect_err(message).to_string();
        assert!(error.starts_with(&format!("line {line}: (of the map) ")), "{error}");
        assert!(error.contains(message), "{error}");
    };
    check("\"whitespace\"", "\", \"", 2, "one ASCII character or \"whitespace\"");
    check("delimiter = \"whitespace\"", "", 1, "either delimiter or regex");
    check("delimiter = \"whitespace\"", "regex = '('", 2, "regex does not compile");
    check("delimiter", "separator", 2, "unknown field `separator`");
    check("[columns]", "comment = \" \"\n[columns]", 3, "comment must be");
    check("[columns]", "disorder = \"5\"\n[columns]", 3, "disorder: \"5\" has no known unit");
    check("rwbs", "letters", 5, "columns.letters is not known; known are issue,");
    check("\"filetime\"", "\"days\"", 4, "columns.issue.unit is \"days\"; allowed is \"ps\"");
    check(", unit = \"filetime\"", "", 4, "columns.issue.unit is missing");
    check("column = 3", "column = 0", 6, "columns.offset.column: give a name, or a number");
    check("column = 3", "column = \"lba\"", 6, "a name needs header_lines");
    check("\"512B\"", "\"sectors\"", 6, "size of a sector or page such as \"512B\"");
    check("\"512B\"", "\"0B\"", 6, "columns.offset.unit is \"0B\"");
    check("\"512B\"", "\"512B\", base = \"octal\"", 6, "allowed is \"decimal\" or \"hex\"");
    check("column = 2", "column = 2, unit = \"s\"", 5, "columns.rwbs.unit has no meaning");
    check(", words = [\"1\", \"yes\"]", "", 8, "columns.fua.words must list");
    check("issue = ", "complete = ", 1, "give columns.issue, or columns.complete and");
    check("[columns]", "fields = 1.5\n[columns]", 3, "invalid type");
    check(
        "\"whitespace\"",
        "\"whitespace\"\nheader_lines = 1\noptional_header = true",
        4,
        "give either",
    );
    check("column = 2", "column = 2, through = 3", 5, "columns.rwbs.through has no meaning");
    check("offset = ", "queue = ", 6, "columns.queue.unit is \"512B\"");
    check("rwbs = ", "operation = ", 1, "columns.operation needs the table [operations]");
    check("rwbs = ", "device = ", 1, "give either columns.operation");
}

/// What the map skips of an empty line and `line`.
fn skips(map: &str, line: &str) -> Vec<(&'static str, u64, u64)> {
    run(map, &format!("\n{line}")).1.skips
}

#[test]
fn damage_of_built_in_formats_has_its_reason() {
    let msr = include_str!("../../../../samples/maps/msr.toml");
    let alibaba = include_str!("../../../../samples/maps/alibaba.toml");
    let tencent = include_str!("../../../../samples/maps/tencent.toml");
    for (map, line, reason) in [
        (msr, "128166385295514663,hm,0,Write,9056014336,2048", WRONG_FIELDS),
        (msr, "128166385295514663,hm", WRONG_FIELDS),
        (msr, "128166385295514663,hm,0,Write,9056014336,2048,2833,7", WRONG_FIELDS),
        (msr, "128166385295514663,hm,0,Trim,9056014336,2048,2833", UNKNOWN_OP),
        (msr, "128166385295514663,hm,0,,9056014336,2048,2833", NO_OPERATION),
        (msr, "128166385295514663,hm,0,Write,9056014336,0,2833", crate::fields::ZERO_LENGTH),
        (msr, "128166385295514663,hm,0,Write,x,2048,2833", NOT_A_NUMBER),
        (msr, "Timestamp,Hostname,0,Write,0,2048,2833", NOT_A_NUMBER),
        (msr, "128166385295514663,hm,0,Write,9223372036854775807,1,2833", OUT_OF_RANGE),
        (msr, "128166385295514663,hm,0,Write,0,2048,99999999999999999999", OUT_OF_RANGE),
        (alibaba, "0,R,126703644672,4096", WRONG_FIELDS),
        (alibaba, "0,D,126703644672,4096,1577808000000626", UNKNOWN_OP),
        (alibaba, "0,R,126703644672,0,1577808000000626", crate::fields::ZERO_LENGTH),
        (alibaba, "0,R,1,9223372036854775807,1577808000000626", OUT_OF_RANGE),
        (alibaba, "0,R,1,1,9223372036854775807", OUT_OF_RANGE),
        (tencent, "1538323200,4247200,128,1", WRONG_FIELDS),
        (tencent, "1538323200,4247200,128,2,1058", UNKNOWN_OP),
        (tencent, "1538323200,-1,128,1,1058", NOT_A_NUMBER),
        (tencent, "1538323200,36028797018963968,128,1,1058", OUT_OF_RANGE),
        (tencent, "1538323200,18014398509481983,1,1,1058", OUT_OF_RANGE),
    ] {
        assert_eq!(skips(map, line), [(reason.0, 1, 2)], "{line}");
    }
}

#[test]
fn an_optional_header_is_no_damage() {
    let map = include_str!("../../../../samples/maps/alibaba.toml");
    let header = "device_id,opcode,offset,length,timestamp";
    let line = "0,R,126703644672,4096,1577808000000626";
    let check = |text: &str, records: usize, skipped: &[(&'static str, u64, u64)]| {
        let (_, parsed) = run(map, text);
        assert_eq!((parsed.records.len(), &parsed.skips[..]), (records, skipped), "{text}");
    };
    check(header, 0, &[]);
    check(&format!("{header}\n{line}\n{header}\n{line}\n"), 2, &[]);
    check(line, 1, &[]);
    // Only the first line can be the header.
    check(&format!("{line}\n{header}"), 1, &[(UNKNOWN_OP.0, 1, 2)]);
    check("\n0,R,126703644672,4096,x", 0, &[(NOT_A_NUMBER.0, 1, 2)]);
}

#[test]
fn picoseconds_are_cut_off() {
    let map = SMALL.replace("filetime", "ps");
    let (parser, parsed) = run(&map, "1000 W 8 8 0\n3999 W 8 8 0\n");
    assert_eq!(parsed.lines(), ["0 ? write 4096 4096", "2 ? write 4096 4096"]);
    assert_eq!(parser.capabilities().clock_ns, 1);
}

#[test]
fn wrong_operations_are_refused() {
    let check = |operations: &str, message: &str| {
        let map = SMALL.replace("rwbs", "operation") + "[operations]\n" + operations;
        let error = MapParser::new(&map).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    };
    check("read = [\"R\"]\nwrite = [\"R\"]", "\"R\" means two operations");
    check("ignore_case = true\nread = [\"R\"]\nwrite = [\"r\"]", "two operations");
    check("read = [\" \"]", "not blank");
    check("ignore_case = true", "lists no word");
    check("erase = [\"E\"]", "unknown field `erase`");
    let error = MapParser::new(&(SMALL.to_owned() + "[operations]\nread = [\"R\"]"));
    assert!(error.unwrap_err().to_string().contains("no meaning with columns.rwbs"));
}
