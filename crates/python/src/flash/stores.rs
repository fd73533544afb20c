//! The levels at which an application sees addresses, objects, or keys.

use std::ops::Bound::{Excluded, Included, Unbounded};

use prism::kv::KvStore;
use prism::object::{Attributes, ObjectId, ObjectStore};
use prism::policy::{Cleaning, Lifetime, Mapping, OverProvisioning, Policy, RangeConfig};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{CommandQueue, FlashShare, Memory, Open, failed, memories, new_bytes, time_of};
use crate::arguments::chosen;

/// A share at the policy level.
#[pyclass(module = "prism._prism", frozen)]
pub struct PolicyLevel(Open<Policy>);

const CLEANINGS: [(&str, Cleaning); 4] = [
    ("greedy", Cleaning::Greedy),
    ("fifo", Cleaning::Fifo),
    ("cost-benefit", Cleaning::CostBenefit),
    ("lru", Cleaning::Lru),
];

const LIFETIMES: [(&str, Lifetime); 5] = [
    ("unknown", Lifetime::Unknown),
    ("short", Lifetime::Short),
    ("medium", Lifetime::Medium),
    ("long", Lifetime::Long),
    ("extreme", Lifetime::Extreme),
];

#[pymethods]
impl PolicyLevel {
    #[new]
    fn new(py: Python<'_>, share: Bound<'_, FlashShare>) -> PyResult<Self> {
        let share = share.get().take()?;
        Ok(Self(Open::new(py.detach(|| Policy::open(share)).map_err(failed)?)))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    /// The bytes of a mapping unit, and those of a block.
    fn units(&self, py: Python<'_>) -> PyResult<(u32, u64)> {
        self.0.call(py, |policy| Ok((policy.unit(), policy.block_bytes())))
    }

    /// Makes a range. Without a percentage, over-provisioning is the rest of the share.
    #[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
    fn configure(
        &self,
        py: Python<'_>,
        begin: u64,
        end: u64,
        mapping: &str,
        cleaning: &str,
        over_provisioning: Option<u32>,
        handles: u32,
        groups: (u32, u32),
    ) -> PyResult<()> {
        let (group_blocks, group_log_blocks) = groups;
        let hybrid = Mapping::Hybrid { group_blocks, group_log_blocks };
        let known = [("page", Mapping::Page), ("block", Mapping::Block), ("hybrid", hybrid)];
        let mapping = chosen("mapping", mapping, &known)?;
        let cleaning = chosen("cleaning", cleaning, &CLEANINGS)?;
        let over_provisioning =
            over_provisioning.map_or(OverProvisioning::Rest, OverProvisioning::Percent);
        let config =
            RangeConfig { over_provisioning, handles, ..RangeConfig::new(mapping, cleaning) };
        self.0.call(py, |policy| policy.configure(begin, end, config))
    }

    fn remove(&self, py: Python<'_>, begin: u64) -> PyResult<()> {
        self.0.call(py, |policy| policy.remove(begin))
    }

    /// The begin, the end and the mapped bytes of each range.
    fn ranges(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64, u64)>> {
        let ranges = self.0.call(py, |policy| Ok(policy.ranges()))?;
        Ok(ranges.into_iter().map(|range| (range.begin, range.end, range.mapped)).collect())
    }

    fn read<'py>(&self, py: Python<'py>, at: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        // Memory for a wrong length could take seconds.
        self.0.call(py, |policy| policy.check(at, length as u64))?;
        new_bytes(py, length, |into| self.0.call(py, |policy| policy.read(at, into)))
    }

    fn read_into(&self, py: Python<'_>, at: u64, buffer: Bound<'_, PyAny>) -> PyResult<()> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        self.0.call(py, |policy| policy.read(at, into))
    }

    fn write(&self, py: Python<'_>, at: u64, data: Bound<'_, PyAny>, handle: u32) -> PyResult<()> {
        let data = Memory::of(&data)?;
        let data = data.bytes();
        self.0.call(py, |policy| policy.write_with_handle(at, data, handle))
    }

    fn trim(&self, py: Python<'_>, at: u64, length: u64) -> PyResult<()> {
        self.0.call(py, |policy| policy.trim(at, length))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, Policy::flush)
    }

    fn idle(&self, py: Python<'_>, program_units: u32) -> PyResult<bool> {
        self.0.call(py, |policy| policy.idle(program_units))
    }

    /// Reads from several addresses at once, each into its buffer.
    fn read_vectored(&self, py: Python<'_>, parts: Vec<(u64, Bound<'_, PyAny>)>) -> PyResult<()> {
        let memories = parts.iter().map(|(at, buffer)| Ok((*at, Memory::writable(buffer)?)));
        let mut memories = memories.collect::<PyResult<Vec<_>>>()?;
        let parts = memories.iter_mut().map(|(at, memory)| (*at, memory.bytes_mut()));
        let mut parts: Vec<(u64, &mut [u8])> = parts.collect();
        self.0.call(py, |policy| policy.read_vectored(&mut parts))
    }

    /// Writes buffers one after the other.
    fn write_vectored(
        &self,
        py: Python<'_>,
        at: u64,
        parts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let parts = memories(&parts)?;
        let parts: Vec<&[u8]> = parts.iter().map(Memory::bytes).collect();
        self.0.call(py, |policy| policy.write_vectored(at, &parts))
    }

    /// A queue of at most `depth` commands.
    fn queue(&self, py: Python<'_>, depth: usize) -> PyResult<CommandQueue> {
        py.detach(|| CommandQueue::of_policy(self.0.share()?, depth))
    }

    /// Whether the share has a clock, and its time in ns, after `pass_ns`.
    fn time(&self, py: Python<'_>, pass_ns: Option<u64>) -> PyResult<(bool, u64)> {
        self.0.call(py, |policy| time_of(&policy.share(), pass_ns))
    }

    fn create_container(
        &self,
        py: Python<'_>,
        range: u64,
        name: &str,
        bytes: u64,
        lifetime: &str,
    ) -> PyResult<()> {
        let lifetime = chosen("lifetime", lifetime, &LIFETIMES)?;
        self.0.call(py, |policy| policy.create_container(range, name, bytes, lifetime).map(drop))
    }

    /// The name, the first address, the address after the last, and the lifetime of each container.
    fn containers(&self, py: Python<'_>) -> PyResult<Vec<(String, u64, u64, &'static str)>> {
        let name = |lifetime: Lifetime| {
            let found = LIFETIMES.iter().find(|(_, other)| *other == lifetime);
            found.expect("every lifetime has a name").0
        };
        let all = self.0.call(py, |policy| Ok(policy.containers()))?.into_iter();
        Ok(all.map(|of| (of.name, of.begin, of.end, name(of.lifetime))).collect())
    }

    fn delete_container(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.0.call(py, |policy| policy.delete_container(name))
    }

    fn read_container<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        offset: u64,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.0.call(py, |policy| policy.container(name)?.check(offset, length as u64))?;
        let read =
            |into: &mut [u8]| self.0.call(py, |policy| policy.container(name)?.read(offset, into));
        new_bytes(py, length, read)
    }

    fn read_container_into(
        &self,
        py: Python<'_>,
        name: &str,
        offset: u64,
        buffer: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        self.0.call(py, |policy| policy.container(name)?.read(offset, into))
    }

    fn write_container(
        &self,
        py: Python<'_>,
        name: &str,
        offset: u64,
        data: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let data = Memory::of(&data)?;
        let data = data.bytes();
        self.0.call(py, |policy| policy.container(name)?.write(offset, data))
    }

    fn trim_container(&self, py: Python<'_>, name: &str, offset: u64, bytes: u64) -> PyResult<()> {
        self.0.call(py, |policy| policy.container(name)?.trim(offset, bytes))
    }
}

/// A share at the object level.
#[pyclass(module = "prism._prism", frozen)]
pub struct ObjectLevel(Open<ObjectStore>);

#[pymethods]
impl ObjectLevel {
    #[new]
    fn new(py: Python<'_>, share: Bound<'_, FlashShare>) -> PyResult<Self> {
        let share = share.get().take()?;
        Ok(Self(Open::new(py.detach(|| ObjectStore::open(share)).map_err(failed)?)))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    /// Bytes for all objects, and those that are free.
    fn capacity(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        self.0.call(py, |store| Ok(store.capacity()))
    }

    fn create(&self, py: Python<'_>, lifetime: &str, cold: bool, priority: bool) -> PyResult<u64> {
        let lifetime = chosen("lifetime", lifetime, &LIFETIMES)?;
        let attributes = Attributes { lifetime, cold, priority, read_only: false };
        self.0.call(py, |store| Ok(store.create(attributes)?.0))
    }

    /// The id and the size of each object.
    fn list(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        let all = self.0.call(py, |store| Ok(store.list()))?;
        Ok(all.into_iter().map(|info| (info.id.0, info.size)).collect())
    }

    fn size(&self, py: Python<'_>, id: u64) -> PyResult<u64> {
        self.0.call(py, |store| Ok(store.info(ObjectId(id))?.size))
    }

    /// Reads into a buffer; returns the bytes there are.
    fn read_into(
        &self,
        py: Python<'_>,
        id: u64,
        offset: u64,
        buffer: Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        self.0.call(py, |store| store.read(ObjectId(id), offset, into))
    }

    fn write(&self, py: Python<'_>, id: u64, offset: u64, data: Bound<'_, PyAny>) -> PyResult<()> {
        let data = Memory::of(&data)?;
        let data = data.bytes();
        self.0.call(py, |store| store.write(ObjectId(id), offset, data))
    }

    fn append(&self, py: Python<'_>, id: u64, data: Bound<'_, PyAny>) -> PyResult<u64> {
        let data = Memory::of(&data)?;
        let data = data.bytes();
        self.0.call(py, |store| store.append(ObjectId(id), data))
    }

    fn truncate(&self, py: Python<'_>, id: u64, size: u64) -> PyResult<()> {
        self.0.call(py, |store| store.truncate(ObjectId(id), size))
    }

    fn delete(&self, py: Python<'_>, id: u64) -> PyResult<()> {
        self.0.call(py, |store| store.delete(ObjectId(id)))
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, ObjectStore::flush)
    }
}

/// A share at the level of keys and values.
#[pyclass(module = "prism._prism", frozen)]
pub struct KeyValueStore(Open<KvStore>);

#[pymethods]
impl KeyValueStore {
    #[new]
    fn new(py: Python<'_>, share: Bound<'_, FlashShare>) -> PyResult<Self> {
        let share = share.get().take()?;
        Ok(Self(Open::new(py.detach(|| KvStore::open(share)).map_err(failed)?)))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    fn set(&self, py: Python<'_>, key: Bound<'_, PyAny>, value: Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (Memory::of(&key)?, Memory::of(&value)?);
        let (key, value) = (key.bytes(), value.bytes());
        self.0.call(py, |store| store.set(key, value))
    }

    fn get<'py>(
        &self,
        py: Python<'py>,
        key: Bound<'_, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let key = Memory::of(&key)?;
        let key = key.bytes();
        let value = self.0.call(py, |store| store.get(key))?;
        Ok(value.map(|value| PyBytes::new(py, &value)))
    }

    fn delete(&self, py: Python<'_>, key: Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Memory::of(&key)?;
        let key = key.bytes();
        self.0.call(py, |store| store.delete(key))
    }

    /// Up to `limit` keys and values from `begin` (or after it) up to but excluding `end`.
    fn scan<'py>(
        &self,
        py: Python<'py>,
        begin: Option<Vec<u8>>,
        after: bool,
        end: Option<Vec<u8>>,
        limit: usize,
    ) -> PyResult<Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>> {
        let first = match &begin {
            None => Unbounded,
            Some(key) if after => Excluded(&key[..]),
            Some(key) => Included(&key[..]),
        };
        let last = end.as_deref().map_or(Unbounded, Excluded);
        let found = self.0.call(py, |store| store.scan((first, last), limit))?;
        let pair =
            |(key, value): (Vec<u8>, Vec<u8>)| (PyBytes::new(py, &key), PyBytes::new(py, &value));
        Ok(found.into_iter().map(pair).collect())
    }

    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, KvStore::flush)
    }

    /// Keys, bytes of keys and values, and the longest key.
    fn stats(&self, py: Python<'_>) -> PyResult<(u64, u64, usize)> {
        self.0.call(py, |store| {
            let stats = store.stats();
            Ok((stats.records, stats.live_bytes, store.key_max()))
        })
    }
}
