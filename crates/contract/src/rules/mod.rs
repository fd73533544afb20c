//! The five rules, each a number over a trace.
