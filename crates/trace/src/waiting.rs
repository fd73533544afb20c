//! A bounded table of entries that wait for their counterpart: bios for the issue, requests for
//! the completion.
//!
//! Several entries may wait under one key (two reads of the same sector in flight); they leave
//! first in, first out. When the table is full, the oldest entry is removed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rustc_hash::FxBuildHasher;

use crate::event::CommandId;
use crate::record::Op;
use crate::symbols::Symbol;

/// The device, sector and operation of a request, or an NVMe command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    sector: u64,
    device_op: u64,
}

impl Key {
    #[inline]
    pub fn new(device: Symbol, op: Op, sector: u64) -> Self {
        // Flushes have no sector: all flushes of a device share a key.
        let sector = if op == Op::Flush { 0 } else { sector };
        Self { sector, device_op: u64::from(device.0) << 8 | op as u64 }
    }

    pub fn command(id: CommandId) -> Self {
        // Devices of the block layer do not use the highest bit.
        let device_op = u64::from(id.controller.0) | 1 << 63;
        Self { sector: u64::from(id.queue) << 16 | u64::from(id.number), device_op }
    }
}

const NONE: u32 = u32::MAX;

/// The table.
#[derive(Debug)]
pub(crate) struct Waiting<V> {
    ends: HashMap<Key, Ends, FxBuildHasher>,
    nodes: Vec<Node<V>>,
    free: u32,
    oldest: u32,
    newest: u32,
    limit: usize,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node<V> {
    key: Key,
    value: V,
    /// Next under the same key; in a free node the next free one.
    next: u32,
    older: u32,
    newer: u32,
}

impl<V: Copy> Waiting<V> {
    /// A table of at most `limit` entries.
    pub fn new(limit: usize) -> Self {
        assert!(limit > 0 && limit < NONE as usize, "limit {limit} does not fit the links");
        Self {
            ends: HashMap::default(),
            nodes: Vec::new(),
            free: NONE,
            oldest: NONE,
            newest: NONE,
            limit,
            len: 0,
        }
    }

    /// Adds an entry behind those of the same key; the number it gets is valid until the
    /// entry is taken.
    pub fn insert(&mut self, key: Key, value: V) -> u32 {
        if self.len == self.limit {
            self.remove(self.oldest);
        }
        let node = Node { key, value, next: NONE, older: self.newest, newer: NONE };
        let id = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let id = self.free;
            self.free = self.nodes[id as usize].next;
            self.nodes[id as usize] = node;
            id
        };
        match self.newest {
            NONE => self.oldest = id,
            newest => self.nodes[newest as usize].newer = id,
        }
        self.newest = id;
        self.len += 1;
        match self.ends.entry(key) {
            Entry::Vacant(place) => {
                place.insert(Ends { first: id, last: id });
            }
            Entry::Occupied(mut place) => {
                let ends = place.get_mut();
                self.nodes[ends.last as usize].next = id;
                ends.last = id;
            }
        }
        id
    }

    /// Removes the first entry under `key`.
    pub fn take(&mut self, key: Key) -> Option<V> {
        let Entry::Occupied(mut place) = self.ends.entry(key) else { return None };
        let first = place.get().first;
        let node = self.nodes[first as usize];
        if node.next == NONE {
            place.remove();
        } else {
            place.get_mut().first = node.next;
        }
        self.release(first);
        Some(node.value)
    }

    /// The first entry under `key`.
    pub fn first_mut(&mut self, key: Key) -> Option<&mut V> {
        let first = self.ends.get(&key)?.first;
        Some(&mut self.nodes[first as usize].value)
    }

    /// Removes entry `id`.
    pub fn remove(&mut self, id: u32) {
        let Node { key, next, .. } = self.nodes[id as usize];
        let ends = *self.ends.get(&key).expect("a waiting entry has its key in the table");
        if ends.first == id {
            if next == NONE {
                self.ends.remove(&key);
            } else {
                self.ends.insert(key, Ends { first: next, ..ends });
            }
        } else {
            let mut before = ends.first;
            while self.nodes[before as usize].next != id {
                before = self.nodes[before as usize].next;
            }
            self.nodes[before as usize].next = next;
            if ends.last == id {
                self.ends.insert(key, Ends { last: before, ..ends });
            }
        }
        self.release(id);
    }

    /// The entry that was added first.
    pub fn oldest(&self) -> Option<(u32, &V)> {
        (self.oldest != NONE).then(|| (self.oldest, &self.nodes[self.oldest as usize].value))
    }

    /// Removes a node from the list of ages and frees it.
    fn release(&mut self, id: u32) {
        let Node { older, newer, .. } = self.nodes[id as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        self.nodes[id as usize].next = self.free;
        self.free = id;
        self.len -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prism_testkit::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]
        /// The naive model is a list of entries in the order of their age.
        #[test]
        fn random_steps_behave_like_a_list(
            steps in prop::collection::vec((0_u8..4, 0_u64..5), 0..200),
        ) {
            let mut table = Waiting::new(8);
            let mut model: Vec<(u64, u32, u64)> = Vec::new();
            for (number, (action, sector)) in steps.into_iter().enumerate() {
                let key = Key::new(Symbol(1), Op::Read, sector);
                match action {
                    0 | 1 => {
                        if model.len() == 8 {
                            model.remove(0);
                        }
                        let id = table.insert(key, number as u64);
                        model.push((sector, id, number as u64));
                    }
                    2 => {
                        let place = model.iter().position(|entry| entry.0 == sector);
                        let expected = place.map(|place| model.remove(place).2);
                        prop_assert_eq!(table.take(key), expected);
                    }
                    _ => {
                        let middle = model.len() / 2;
                        if let Some(&(_, id, _)) = model.get(middle) {
                            table.remove(id);
                            model.remove(middle);
                        }
                    }
                }
                let oldest = table.oldest().map(|(id, &value)| (id, value));
                prop_assert_eq!(oldest, model.first().map(|&(_, id, value)| (id, value)));
                prop_assert_eq!(table.len, model.len());
            }
        }
    }
}
