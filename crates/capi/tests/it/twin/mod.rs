//! The programs in Rust that correspond to those in C, as tests with captured output.

#[path = "../../../../prism/examples/algorithm_iv_1.rs"]
mod algorithm_iv_1;
#[path = "../../../../prism/examples/algorithm_iv_2.rs"]
mod algorithm_iv_2;
#[path = "../../../../prism/examples/algorithm_iv_3.rs"]
mod algorithm_iv_3;
#[path = "../../../../prism/examples/function.rs"]
mod function;
#[path = "../../../../prism/examples/kv.rs"]
mod kv;
#[path = "../../../../prism/examples/monitor.rs"]
mod monitor;
#[path = "../../../../prism/examples/object.rs"]
mod object;
#[path = "../../../../prism/examples/policy.rs"]
mod policy;
#[path = "../../../../prism/examples/raw.rs"]
mod raw;

macro_rules! twins {
    ($($name:ident),*) => {$(
        #[test]
        fn $name() -> Result<(), Box<dyn std::error::Error>> {
            self::$name::main()
        }
    )*};
}

twins!(algorithm_iv_1, algorithm_iv_2, algorithm_iv_3, function, kv, monitor, object, policy, raw);
