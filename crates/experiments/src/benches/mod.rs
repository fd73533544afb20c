//! Work whose speed the caller measures with a clock.

pub mod calls;
pub mod judging;
pub mod levels;
pub mod preparing;
pub mod real_time;
pub mod recovery;
pub mod speed;
