//! The same trace with one thing changed, simulated.
