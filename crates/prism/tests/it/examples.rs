//! Every example runs and passes its own checks.

#[path = "../../examples/algorithm_iv_1.rs"]
mod algorithm_iv_1;
#[path = "../../examples/algorithm_iv_2.rs"]
mod algorithm_iv_2;
#[path = "../../examples/algorithm_iv_3.rs"]
mod algorithm_iv_3;
#[path = "../../examples/event_loop.rs"]
mod event_loop;
#[path = "../../examples/file_threads.rs"]
mod file_threads;
#[path = "../../examples/function.rs"]
mod function;
#[path = "../../examples/kv.rs"]
mod kv;
#[path = "../../examples/monitor.rs"]
mod monitor;
#[path = "../../examples/object.rs"]
mod object;
#[path = "../../examples/policy.rs"]
mod policy;
#[path = "../../examples/raw.rs"]
mod raw;
#[path = "../../examples/recovery.rs"]
mod recovery;

/// A test for each example. The list is compared with the folder.
macro_rules! examples {
    ($($name:ident),*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        $(#[test]
        fn $name() -> Result<(), Box<dyn std::error::Error>> {
            self::$name::main()
        })*
    };
}

examples!(
    algorithm_iv_1,
    algorithm_iv_2,
    algorithm_iv_3,
    event_loop,
    file_threads,
    function,
    kv,
    monitor,
    object,
    policy,
    raw,
    recovery
);

#[test]
fn no_example_is_left_out() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let entries = std::fs::read_dir(folder).expect("the folder of examples");
    let file_name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.expect("a readable folder").file_name().to_string_lossy().into_owned()
    };
    let mut found: Vec<_> = entries.map(file_name).collect();
    found.sort();
    let expected: Vec<_> = NAMES.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(found, expected);
}
