//! What memcached's protocol needs of a cache: look up, insert and remove items, and change what is
//! kept about them in memory.
//!
//! Times are seconds since 1970, by the server's clock. All calls return at once. The value of an
//! item on flash comes later ([`Items::finished`]); the caller keeps as many such reads in
//! flight as it wants.

/// The address of a version of an item. Each version of each item has another one, so two equal
/// addresses mean the same version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemAddress(pub u64);

/// What is kept in memory about an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// When it expires; 0 for never.
    pub expires: u32,
    /// When it was last looked up; the time of its insertion before that. Exact to the second for
    /// the first four years of a process.
    pub last_access: u32,
    /// It was fetched since it was set.
    pub fetched: bool,
    /// It was marked as stale by a meta delete.
    pub stale: bool,
    /// A client was asked to set it anew, and no other one is.
    pub win: bool,
}

/// An item that was found. It is not expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its key.
    pub key: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// The client's flags.
    pub flags: u32,
    /// The unique number of this version, "cas unique" of the protocol.
    pub version: u64,
    /// Where it is.
    pub at: ItemAddress,
    /// What is kept in memory about it.
    pub meta: Meta,
    /// Whether it was read from flash.
    pub from_flash: bool,
}

/// The answer of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// There is no such item, or it is expired.
    Miss,
    /// The item, which is in memory.
    Found(Item<'a>),
    /// The item is being read from flash: [`Items::finished`] returns it with the caller's tag. The
    /// number is an upper bound of its bytes.
    Reading(usize),
}

/// An item to be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewItem<'a> {
    /// Its key, 1 to 250 bytes.
    pub key: &'a [u8],
    /// Its value, in two parts, so that append and prepend need no copy of their own.
    pub value: [&'a [u8]; 2],
    /// The client's flags.
    pub flags: u32,
    /// The unique number of this version, from [`Items::next_version`] or the client.
    pub version: u64,
    /// What is kept in memory about it.
    pub meta: Meta,
}

/// Why an item is not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is longer than [`Items::longest`] allows. A previous version is unchanged.
    #[error("the item is too large for the cache")]
    TooLarge,
    /// All buffers wait for flash: try again after [`Items::finished`] or a wait for the device. A
    /// previous version is unchanged.
    #[error("all buffers wait for flash")]
    Busy,
    /// The device fails. A previous version is removed, as it was to be replaced.
    #[error("the cache takes no more items")]
    Failed,
}

/// A cache, as a server sees it.
pub trait Items {
    /// The longest sum of key and value.
    fn longest(&self) -> usize;

    /// Looks up an item; `tag` comes back if it has to be read. An expired one is forgotten.
    fn lookup(&mut self, key: &[u8], tag: u64, now: u32) -> Lookup<'_>;

    /// What is known of an item without reading it: its address and what is kept in memory. On
    /// flash the key is not compared, only a hash of it.
    fn peek(&mut self, key: &[u8], now: u32) -> Option<(ItemAddress, Meta)>;

    /// Passes the next item that was read to `take`, with the tag of its lookup; `None` if it
    /// turned out to be another key's, expired, or unreadable. Returns false, without calling
    /// `take`, if no read is finished. The item may have been replaced or removed meanwhile
    /// ([`Items::is_current`]).
    fn finished(&mut self, now: u32, take: &mut dyn FnMut(u64, Option<Item<'_>>)) -> bool;

    /// Whether the item at `at` is still the current version of `key`.
    fn is_current(&self, key: &[u8], at: ItemAddress) -> bool;

    /// A number that is larger than that of every version before.
    fn next_version(&mut self) -> u64;

    /// Inserts an item, or replaces it. A cache that limits its writes may drop it at once, and the
    /// previous version with it.
    ///
    /// # Errors
    /// [`Refusal`].
    fn insert(&mut self, item: NewItem<'_>, now: u32) -> Result<(), Refusal>;

    /// Removes an item; false if there is none.
    fn remove(&mut self, key: &[u8]) -> bool;

    /// Changes what is kept in memory about the item at `at`; false if that is no longer the
    /// current version of `key`.
    fn set_meta(&mut self, key: &[u8], at: ItemAddress, meta: Meta) -> bool;

    /// Forgets all items that were inserted before `at`, a time that may be in the future.
    fn flush_all(&mut self, at: u32, now: u32);

    /// Passes items that are in memory, and not expired, to `take` until that returns false. A
    /// cache may leave some out.
    fn buffered(&self, now: u32, take: &mut dyn FnMut(Item<'_>) -> bool);

    /// Items in the cache, those expired and not yet forgotten included.
    fn len(&self) -> u64;

    /// Whether there is none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Further figures for the command `stats`: a name and a value each.
    fn figures(&self, _add: &mut dyn FnMut(&str, &dyn std::fmt::Display)) {}
}
