//! Checks of the source tree itself: see `tests/tidy`.
