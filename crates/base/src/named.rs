//! Enums whose variants have names in files, options and reports.

/// An enum whose variants have names. [`named_enum!`](crate::named_enum) implements it.
pub trait Named: Copy + Sized + 'static {
    /// Every variant, in order.
    const ALL: &'static [Self];

    /// The name.
    fn name(self) -> &'static str;

    /// The variant with that name.
    #[must_use]
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|variant| variant.name() == name)
    }

    /// All names, for messages.
    #[must_use]
    fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().map(|variant| variant.name()).collect();
        names.join(", ")
    }
}

/// Defines an enum from its variants and their names, with a constant `ALL`, a method `name` and
/// the trait [`Named`].
#[macro_export]
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $enum:ident {
            $($(#[$of_variant:meta])* $variant:ident = $name:literal,)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $enum { $($(#[$of_variant])* $variant),+ }

        impl $enum {
            /// Every variant, in order.
            $visibility const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in files, options and reports.
            #[must_use]
            $visibility fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl $crate::Named for $enum {
            const ALL: &'static [Self] = &Self::ALL;

            fn name(self) -> &'static str {
                self.name()
            }
        }
    };
}
