//! Containers: named parts of a range, each for data of one lifetime.
//!
//! Source: the extension that Prism-SSD (Shen et al., ICDCS'19) proposes in section VII. The
//! containers of a range share its over-provisioning; each lifetime has a placement handle, so that
//! data of one lifetime is stored in the same blocks.

use crate::error::{FlashError, Result};

use crate::policy::config::{ContainerInfo, Lifetime};
use crate::policy::{Inner, Policy};

/// A container: addresses from 0 on.
#[derive(Debug)]
pub struct Container<'a> {
    policy: &'a Policy,
    info: ContainerInfo,
}

impl Policy {
    /// Makes a container of `bytes` bytes in the range that begins at `range`.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if no range begins there or the name is taken,
    /// [`FlashError::Unaligned`], [`FlashError::NoSpace`] if no free part of the range is large
    /// enough.
    pub fn create_container(
        &self,
        range: u64,
        name: &str,
        bytes: u64,
        lifetime: Lifetime,
    ) -> Result<Container<'_>> {
        let info = self.lock().create_container(range, name, bytes, lifetime)?;
        Ok(Container { policy: self, info })
    }

    /// The container of that name.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if there is none.
    pub fn container(&self, name: &str) -> Result<Container<'_>> {
        let found = self.containers().into_iter().find(|container| container.name == name);
        let info = found.ok_or_else(|| FlashError::Invalid {
            what: format!("there is no container named {name:?}; create it first"),
        })?;
        Ok(Container { policy: self, info })
    }

    /// The containers of all ranges, by address.
    #[must_use]
    pub fn containers(&self) -> Vec<ContainerInfo> {
        let inner = self.lock();
        inner.tables.ranges.iter().flat_map(|range| range.containers.clone()).collect()
    }

    /// Deletes a container with its data, durably.
    ///
    /// # Errors
    /// [`FlashError::Invalid`] if there is none of this name.
    pub fn delete_container(&self, name: &str) -> Result<()> {
        let info = self.container(name)?.info;
        let mut inner = self.lock();
        // Its data first, so that the next owner of the addresses cannot read it.
        inner.trim(info.begin, info.end - info.begin)?;
        inner.flush()?;
        let mut tables = inner.tables.clone();
        for range in &mut tables.ranges {
            range.containers.retain(|container| container.name != name);
        }
        inner.save(tables)
    }
}

impl Inner {
    fn create_container(
        &mut self,
        begin: u64,
        name: &str,
        bytes: u64,
        lifetime: Lifetime,
    ) -> Result<ContainerInfo> {
        let unit = u64::from(self.format.unit);
        if bytes == 0 || !bytes.is_multiple_of(unit) {
            let what = "the size of a container";
            return Err(FlashError::Unaligned { what, value: bytes, unit });
        }
        let mut all = self.tables.ranges.iter().flat_map(|range| &range.containers);
        if all.any(|container| container.name == name) {
            let what = format!("a container named {name:?} exists; choose another name");
            return Err(FlashError::Invalid { what });
        }
        let mut tables = self.tables.clone();
        let range = tables.ranges.iter_mut().find(|range| range.begin == begin);
        let range = range.ok_or_else(|| FlashError::Invalid {
            what: format!("no range begins at {begin}; list the ranges"),
        })?;
        // The first gap that is large enough.
        let mut at = range.begin;
        let mut place = 0;
        for container in &range.containers {
            if container.begin - at >= bytes {
                break;
            }
            at = container.end;
            place += 1;
        }
        if range.end - at < bytes {
            let what =
                format!("no {bytes} contiguous bytes of the range are free; delete a container");
            return Err(FlashError::NoSpace { what });
        }
        let info = ContainerInfo { name: name.into(), begin: at, end: at + bytes, lifetime };
        range.containers.insert(place, info.clone());
        self.save(tables)?;
        Ok(info)
    }
}

impl Container<'_> {
    /// Its name, addresses and lifetime.
    #[must_use]
    pub fn info(&self) -> &ContainerInfo {
        &self.info
    }

    /// The address of `offset`, if `bytes` bytes from there on are in the container, and it
    /// still exists.
    fn address(&self, offset: u64, bytes: u64) -> Result<u64> {
        let size = self.info.end - self.info.begin;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let end = offset.saturating_add(bytes);
            return Err(FlashError::PastEnd { within: "container", end, limit: size });
        }
        let inner = self.policy.lock();
        let mut all = inner.tables.ranges.iter().flat_map(|range| &range.containers);
        if !all.any(|info| *info == self.info) {
            return Err(FlashError::Released);
        }
        Ok(self.info.begin + offset)
    }

    /// Checks that these bytes are in the container, before a caller allocates memory for them.
    ///
    /// # Errors
    /// [`FlashError::PastEnd`], [`FlashError::Released`].
    pub fn check(&self, offset: u64, bytes: u64) -> Result<()> {
        self.address(offset, bytes).map(drop)
    }

    /// Reads; see [`Policy::read`].
    ///
    /// # Errors
    /// [`FlashError::PastEnd`].
    pub fn read(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let address = self.address(offset, into.len() as u64)?;
        self.policy.read(address, into)
    }

    /// Writes, as data of the container's lifetime; see [`Policy::write`].
    ///
    /// # Errors
    /// As [`Policy::write`].
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let address = self.address(offset, data.len() as u64)?;
        self.policy.write_with_handle(address, data, self.info.lifetime.handle())
    }

    /// Trims; see [`Policy::trim`].
    ///
    /// # Errors
    /// [`FlashError::Unaligned`], [`FlashError::PastEnd`].
    pub fn trim(&self, offset: u64, bytes: u64) -> Result<()> {
        let address = self.address(offset, bytes)?;
        self.policy.trim(address, bytes)
    }
}
