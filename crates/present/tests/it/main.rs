//! Tests of what is presented, against the pages of `docs`.

mod prism_ssd;
