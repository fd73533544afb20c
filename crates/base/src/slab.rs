//! Reusable slots, which save an allocation per operation.

/// A growing array with a list of free slots. Its length never exceeds the largest number of slots
/// in use at once, which the caller limits.
#[derive(Clone, Debug)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// An empty slab.
    #[must_use]
    pub fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    /// Allocates a slot, which contains its last value or the default.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            self.places.len() as u32 - 1
        })
    }

    /// Frees a slot.
    pub fn give(&mut self, place: u32) {
        self.free.push(place);
    }

    /// The number of slots, in use or free.
    #[must_use]
    pub fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// The number of slots in use.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

impl<T: Default> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}
