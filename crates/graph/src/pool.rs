//! Threads, which the caller has: this crate computes and starts none.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A computation that runs on one thread.
pub type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// Runs computations at once.
pub trait Pool: Sync {
    /// How many run at once.
    fn threads(&self) -> usize;

    /// Runs all of `jobs`; returns when all have ended.
    ///
    /// # Panics
    /// If a job panics.
    fn run(&self, jobs: Vec<Job<'_>>);
}

/// One computation after another, on the thread of the caller.
#[derive(Clone, Copy, Debug)]
pub struct Serial;

impl Pool for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, jobs: Vec<Job<'_>>) {
        jobs.into_iter().for_each(|job| job());
    }
}

/// A value that threads read and write without locks. Every access is of the whole value, and no
/// order between accesses to several values is promised: rounds are separated by
/// [`Pool::run`], which is a barrier.
pub trait Cell: Send + Sync + Sized {
    /// The value.
    type Value: Copy + PartialEq + Send + Sync;
    /// Bytes of a cell.
    const BYTES: usize;
    /// A cell with this value.
    fn new(value: Self::Value) -> Self;
    /// The value.
    fn get(&self) -> Self::Value;
    /// Changes the value.
    fn set(&self, value: Self::Value);
    /// The value as eight bytes.
    fn bits(value: Self::Value) -> u64;
    /// The value that these bytes are.
    fn of_bits(bits: u64) -> Self::Value;
}

/// A cell of a `u32`.
pub type CellU32 = AtomicU32;

impl Cell for AtomicU32 {
    type Value = u32;
    const BYTES: usize = 4;
    fn new(value: u32) -> Self {
        Self::new(value)
    }
    #[inline]
    fn get(&self) -> u32 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn set(&self, value: u32) {
        self.store(value, Ordering::Relaxed);
    }
    fn bits(value: u32) -> u64 {
        value.into()
    }
    fn of_bits(bits: u64) -> u32 {
        bits as u32
    }
}

/// A cell of a `u64`.
pub type CellU64 = AtomicU64;

impl Cell for AtomicU64 {
    type Value = u64;
    const BYTES: usize = 8;
    fn new(value: u64) -> Self {
        Self::new(value)
    }
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
    #[inline]
    fn set(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }
    fn bits(value: u64) -> u64 {
        value
    }
    fn of_bits(bits: u64) -> u64 {
        bits
    }
}

/// A cell of an `f64`.
#[derive(Debug)]
pub struct CellF64(AtomicU64);

impl Cell for CellF64 {
    type Value = f64;
    const BYTES: usize = 8;
    fn new(value: f64) -> Self {
        Self(AtomicU64::new(value.to_bits()))
    }
    #[inline]
    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
    #[inline]
    fn set(&self, value: f64) {
        self.0.store(value.to_bits(), Ordering::Relaxed);
    }
    fn bits(value: f64) -> u64 {
        value.to_bits()
    }
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

/// A cell of an `f64` that is kept as an `f32`: half the memory, and a relative error of up to
/// 6e-8 with each change.
#[derive(Debug)]
pub struct CellF32(AtomicU32);

impl Cell for CellF32 {
    type Value = f64;
    const BYTES: usize = 4;
    fn new(value: f64) -> Self {
        Self(AtomicU32::new((value as f32).to_bits()))
    }
    #[inline]
    fn get(&self) -> f64 {
        f32::from_bits(self.0.load(Ordering::Relaxed)).into()
    }
    #[inline]
    fn set(&self, value: f64) {
        self.0.store((value as f32).to_bits(), Ordering::Relaxed);
    }
    fn bits(value: f64) -> u64 {
        value.to_bits()
    }
    fn of_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }
}

impl CellF64 {
    /// Makes the value `value`, if that is less; returns whether it was. Neither may be negative:
    /// the bits of such numbers are ordered as the numbers are.
    #[inline]
    pub fn lower(&self, value: f64) -> bool {
        self.get() > value && self.0.fetch_min(value.to_bits(), Ordering::Relaxed) > value.to_bits()
    }
}
