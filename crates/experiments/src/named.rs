//! Enums whose variants have names in tables.

/// Defines an enum from its variants and their names, with a constant `ALL` and a method `name`.
macro_rules! named_enum {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)+ }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $enum { $($(#[$doc])* $variant),+ }

        impl $enum {
            /// Every variant, in order.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// Its name in tables.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }
    };
}
