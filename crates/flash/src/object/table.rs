//! The table of objects: their attributes and extents, and the free units.

use std::collections::BTreeMap;
use std::io;

use prism_base::codec::{invalid, load, load_whole, save};

use crate::object::{Attributes, ObjectId};
use crate::policy::Lifetime;

/// Units `start..start + count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) start: u32,
    pub(crate) count: u32,
}

/// An object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) attributes: Attributes,
    pub(crate) size: u64,
    pub(crate) extents: Vec<Extent>,
}

impl Object {
    pub(crate) fn units(&self) -> u64 {
        self.extents.iter().map(|extent| u64::from(extent.count)).sum()
    }

    /// The parts of the store that hold `len` bytes from `offset` on: address and length.
    pub(crate) fn parts(&self, unit: u64, offset: u64, len: u64) -> Vec<(u64, u64)> {
        let (mut parts, mut before, mut at, mut left) = (Vec::new(), 0, offset, len);
        for extent in &self.extents {
            let bytes = u64::from(extent.count) * unit;
            if left > 0 && at < before + bytes {
                let within = at - before;
                let part = left.min(bytes - within);
                parts.push((u64::from(extent.start) * unit + within, part));
                (at, left) = (at + part, left - part);
            }
            before += bytes;
        }
        debug_assert!(left == 0, "an object is as long as its extents");
        parts
    }

    /// Removes units from the end until `units` are left; returns them.
    pub(crate) fn shorten(&mut self, units: u64) -> Vec<Extent> {
        let mut gone = Vec::new();
        let mut over = self.units().saturating_sub(units);
        while over > 0 {
            let last = self.extents.last_mut().expect("as many units as were counted");
            let cut = over.min(u64::from(last.count)) as u32;
            last.count -= cut;
            over -= u64::from(cut);
            gone.push(Extent { start: last.start + last.count, count: cut });
            if last.count == 0 {
                self.extents.pop();
            }
        }
        gone
    }

    /// Adds units at the end.
    pub(crate) fn extend(&mut self, extent: Extent) {
        match self.extents.last_mut() {
            Some(last) if last.start + last.count == extent.start => last.count += extent.count,
            _ => self.extents.push(extent),
        }
    }
}

/// Units that belong to no object.
#[derive(Clone, Debug, Default)]
pub(crate) struct FreeUnits {
    /// Start to count.
    runs: BTreeMap<u32, u32>,
    total: u64,
}

impl FreeUnits {
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn runs(&self) -> impl Iterator<Item = Extent> {
        self.runs.iter().map(|(&start, &count)| Extent { start, count })
    }

    /// Allocates up to `count` contiguous units: at `near` if units are free there, else from the
    /// first run of that length, else from the longest run.
    pub(crate) fn take(&mut self, count: u32, near: Option<u32>) -> Option<Extent> {
        let at_near = near.and_then(|near| self.runs.get_key_value(&near));
        let fits = || self.runs.iter().find(|(_, run)| **run >= count);
        let longest = || self.runs.iter().max_by_key(|(start, run)| (**run, u32::MAX - **start));
        let (&start, &run) = at_near.or_else(fits).or_else(longest)?;
        let count = count.min(run);
        self.runs.remove(&start);
        if run > count {
            self.runs.insert(start + count, run - count);
        }
        self.total -= u64::from(count);
        Some(Extent { start, count })
    }

    pub(crate) fn put(&mut self, extent: Extent) {
        let Extent { mut start, mut count } = extent;
        self.total += u64::from(count);
        if let Some((&before, &run)) = self.runs.range(..start).next_back() {
            debug_assert!(before + run <= start, "units freed twice");
            if before + run == start {
                self.runs.remove(&before);
                (start, count) = (before, count + run);
            }
        }
        if let Some(run) = self.runs.remove(&(start + count)) {
            count += run;
        }
        self.runs.insert(start, count);
    }

    /// Removes an object's extent from the free units; returns whether it was free.
    pub(crate) fn claim(&mut self, extent: Extent) -> bool {
        let Some((&start, &run)) = self.runs.range(..=extent.start).next_back() else {
            return false;
        };
        let (end, last) = (start + run, extent.start + extent.count);
        if last > end {
            return false;
        }
        self.runs.remove(&start);
        if extent.start > start {
            self.runs.insert(start, extent.start - start);
        }
        if end > last {
            self.runs.insert(last, end - last);
        }
        self.total -= u64::from(extent.count);
        true
    }
}

/// Encodes a change of the table for the journal.
pub(crate) fn encode(id: ObjectId, object: Option<&Object>) -> Vec<u8> {
    let mut out = Vec::new();
    save(&id.0, &mut out);
    let Some(object) = object else { return out };
    let Attributes { priority, read_only, cold, lifetime } = object.attributes;
    let flags = u32::from(priority) | u32::from(read_only) << 1 | u32::from(cold) << 2;
    let numbers = object.extents.iter().flat_map(|extent| [extent.start, extent.count]);
    let numbers: Vec<u32> = numbers.collect();
    save(&(flags | lifetime.handle() << 3, object.size, numbers), &mut out);
    out
}

/// Decodes what [`encode`] wrote: an object, or `None` for a deleted one.
pub(crate) fn decode(mut bytes: &[u8]) -> io::Result<(ObjectId, Option<Object>)> {
    let id = ObjectId(load(&mut bytes)?);
    if bytes.is_empty() {
        return Ok((id, None));
    }
    let (flags, size, numbers): (u32, u64, Vec<u32>) = load_whole(bytes)?;
    let lifetime = Lifetime::ALL.get((flags >> 3) as usize);
    let lifetime = *lifetime.ok_or_else(|| invalid("a lifetime that is not known"))?;
    let attributes = Attributes {
        priority: flags & 1 != 0,
        read_only: flags & 2 != 0,
        cold: flags & 4 != 0,
        lifetime,
    };
    let extents = numbers.chunks_exact(2).map(|pair| Extent { start: pair[0], count: pair[1] });
    let extents = extents.collect();
    Ok((id, Some(Object { attributes, size, extents })))
}

#[cfg(test)]
mod tests {
    use prism_base::Rng;

    use prism_testkit::seed;

    use super::*;

    #[test]
    fn objects_decode_to_what_was_encoded() {
        let object = Object {
            attributes: Attributes {
                cold: true,
                lifetime: Lifetime::Long,
                ..Attributes::default()
            },
            size: 1 << 33,
            extents: vec![Extent { start: 3, count: 4 }, Extent { start: 90, count: 1 }],
        };
        let bytes = encode(ObjectId(7), Some(&object));
        assert_eq!(decode(&bytes).unwrap(), (ObjectId(7), Some(object)));
        assert_eq!(decode(&encode(ObjectId(8), None)).unwrap(), (ObjectId(8), None));
        assert!((9..bytes.len()).all(|len| decode(&bytes[..len]).is_err()));
    }

    #[test]
    fn random_free_units_equal_a_naive_array() {
        let mut rng = Rng::stream(seed(3), "object.free");
        for round in 0..100 {
            let mut free = FreeUnits::default();
            let mut model = [false; 64];
            let mut owned: Vec<Extent> = vec![Extent { start: 0, count: 64 }];
            for _ in 0..200 {
                if rng.chance(0.5) && !owned.is_empty() {
                    let extent = owned.swap_remove(rng.below(owned.len() as u64) as usize);
                    free.put(extent);
                    model[extent.start as usize..(extent.start + extent.count) as usize].fill(true);
                } else if let Some(extent) = free.take(1 + rng.below(9) as u32, None) {
                    let span = extent.start as usize..(extent.start + extent.count) as usize;
                    assert!(model[span.clone()].iter().all(|&free| free), "round {round}");
                    model[span].fill(false);
                    owned.push(extent);
                }
                let total = model.iter().filter(|&&free| free).count() as u64;
                assert_eq!(free.total(), total);
                let runs: u64 = free.runs().map(|run| u64::from(run.count)).sum();
                assert_eq!(runs, total);
            }
            let extent = Extent { start: 5, count: 3 };
            let is_free = model[5..8].iter().all(|&free| free);
            assert_eq!(free.claim(extent), is_free, "round {round}");
        }
    }

    #[test]
    fn an_object_is_cut_and_extended_in_parts() {
        let mut object = Object::default();
        object.extend(Extent { start: 10, count: 2 });
        object.extend(Extent { start: 12, count: 1 });
        object.extend(Extent { start: 50, count: 4 });
        assert_eq!((object.extents.len(), object.units()), (2, 7));
        assert_eq!(object.parts(512, 1024, 1000), [(12 * 512, 512), (50 * 512, 488)]);
        let gone = object.shorten(2);
        let expected = [Extent { start: 50, count: 4 }, Extent { start: 12, count: 1 }].to_vec();
        assert_eq!((gone, object.units()), (expected, 2));
    }
}
