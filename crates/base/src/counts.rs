//! Structures of counts that only grow: sums over several, and what was added since a time.

/// Implements `add` and `since` for a structure of counts by its fields: `parts` are structures of
/// the kind themselves, `values` are numbers.
#[macro_export]
macro_rules! counts {
    ($owner:ty { $(parts: $($part:ident),+;)? values: $($value:ident),+; }) => {
        impl $owner {
            /// Adds the counts of `other`.
            pub fn add(&mut self, other: &Self) {
                $($(self.$part.add(&other.$part);)+)?
                $(self.$value += other.$value;)+
            }

            /// The counts added since `earlier`.
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self {
                    $($($part: self.$part.since(&earlier.$part),)+)?
                    $($value: self.$value - earlier.$value,)+
                }
            }
        }
    };
}
