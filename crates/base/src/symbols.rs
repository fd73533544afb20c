//! Interned names (commands, devices, files, phases).

use rustc_hash::FxHashMap;

/// The number of a name in [`Symbols`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Symbol(pub u32);

impl Symbol {
    /// The empty name: unknown.
    pub const NONE: Self = Self(0);
}

/// The names of one trace. At most [`Symbols::LIMIT`] are kept, so that a trace with a hundred
/// million file names cannot fill the memory; later ones become `(other)`.
#[derive(Clone, Debug)]
pub struct Symbols {
    names: Vec<Box<str>>,
    index: FxHashMap<Box<str>, u32>,
}

impl Symbols {
    /// The most names; at about 100 bytes each this limits the table to some 100 MB.
    pub const LIMIT: usize = 1 << 20;

    /// A table with only the empty name.
    #[must_use]
    pub fn new() -> Self {
        Self { names: vec!["".into()], index: FxHashMap::from_iter([("".into(), 0)]) }
    }

    /// The number of `name`, assigned now if it is new.
    pub fn intern(&mut self, name: &str) -> Symbol {
        if let Some(&id) = self.index.get(name) {
            return Symbol(id);
        }
        if self.names.len() + 1 >= Self::LIMIT && name != "(other)" {
            return self.intern("(other)");
        }
        let id = self.names.len() as u32;
        self.names.push(name.into());
        self.index.insert(name.into(), id);
        Symbol(id)
    }

    /// The name of `symbol`.
    ///
    /// # Panics
    /// If the symbol comes from another table.
    #[must_use]
    pub fn name(&self, symbol: Symbol) -> &str {
        &self.names[symbol.0 as usize]
    }

    /// The number of `name` if it is known.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Symbol> {
        self.index.get(name).map(|&id| Symbol(id))
    }

    /// Every name, in the order of its number; the first is the empty one.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(AsRef::as_ref)
    }
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new()
    }
}
