//! An array of numbers with fast access to the minimum.

/// Numbers by index, with the minimum of every group of [`Column::GROUP`]. Lowering one writes two
/// words; finding the minimum reads the minimum of every group and the members of one group.
#[derive(Clone, Debug)]
pub(crate) struct Column<T> {
    values: Vec<T>,
    group_min: Vec<T>,
}

impl<T: Copy + Ord> Column<T> {
    /// Members of a group, near the square root of the blocks of a large die.
    const GROUP: usize = 64;

    /// An array of `len` times `value`.
    #[must_use]
    pub(crate) fn new(len: usize, value: T) -> Self {
        Self { values: vec![value; len], group_min: vec![value; len.div_ceil(Self::GROUP)] }
    }

    /// The numbers.
    #[must_use]
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Sets number `index`, which must not rise.
    pub(crate) fn lower(&mut self, index: usize, value: T) {
        debug_assert!(value <= self.values[index]);
        self.values[index] = value;
        let min = &mut self.group_min[index / Self::GROUP];
        *min = value.min(*min);
    }

    /// Sets number `index`.
    pub(crate) fn set(&mut self, index: usize, value: T) {
        self.values[index] = value;
        let group = index / Self::GROUP;
        let end = self.values.len().min((group + 1) * Self::GROUP);
        let members = &self.values[group * Self::GROUP..end];
        self.group_min[group] = *members.iter().min().expect("a group has members");
    }

    /// The first index of the smallest number, and the number.
    ///
    /// # Panics
    /// If the column is empty.
    #[must_use]
    pub(crate) fn min(&self) -> (usize, T) {
        let least = *self.group_min.iter().min().expect("a column is not empty");
        let group =
            self.group_min.iter().position(|&min| min == least).expect("the minimum is in a group");
        let place = self.values[group * Self::GROUP..].iter().position(|&v| v == least);
        (group * Self::GROUP + place.expect("the minimum of a group is in it"), least)
    }
}

#[cfg(test)]
mod tests {
    use prism_testkit::seed;

    use super::*;
    use prism_base::Rng;

    #[test]
    fn random_columns_give_the_first_smallest() {
        let mut rng = Rng::stream(seed(2), "column");
        for len in [1, 5, 64, 65, 300] {
            let mut column = Column::new(len, 1000);
            for _ in 0..2000 {
                let index = rng.below(len as u64) as usize;
                let value = rng.below(1000) as u32;
                if value <= column.values()[index] {
                    column.lower(index, value);
                } else {
                    column.set(index, value);
                }
                let least = column.values().iter().min().unwrap();
                let first = column.values().iter().position(|v| v == least).unwrap();
                assert_eq!(column.min(), (first, *least));
            }
        }
    }
}
