//! The levels at which an application sees blocks: raw and function.

use prism::FlashError;
use prism::function::{Channel, Function, Unit};
use prism::raw::{Address, Raw, VectorError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{
    AddressArgument, CommandQueue, FlashShare, Memory, Open, PageAddress, failed, memories,
    new_bytes, page_address, time_of,
};

/// Channels, LUNs of each, blocks of a LUN, pages of a block, bytes of a page, out-of-band bytes.
type ShareShape = (Vec<usize>, u32, u32, u32, u32);

fn shape(geometry: &prism::ShareGeometry) -> ShareShape {
    let channels = geometry.channels.iter().map(Vec::len).collect();
    (
        channels,
        geometry.blocks_per_lun,
        geometry.pages_per_block,
        geometry.page_size,
        geometry.oob_size,
    )
}

/// The error of the first page that failed.
fn first_error(error: VectorError) -> FlashError {
    error.error
}

/// A share at the raw level.
#[pyclass(module = "prism._prism", frozen)]
pub struct RawLevel(Open<Raw>);

#[pymethods]
impl RawLevel {
    #[new]
    fn new(py: Python<'_>, share: Bound<'_, FlashShare>) -> PyResult<Self> {
        let share = share.get().take()?;
        Ok(Self(Open::new(py.detach(|| Raw::open(share)).map_err(failed)?)))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    fn geometry(&self, py: Python<'_>) -> PyResult<ShareShape> {
        self.0.call(py, |raw| Ok(shape(raw.geometry())))
    }

    /// The addresses of all blocks.
    fn blocks(&self, py: Python<'_>) -> PyResult<Vec<PageAddress>> {
        self.0.call(py, |raw| Ok(raw.blocks().map(page_address).collect()))
    }

    fn read_page<'py>(
        &self,
        py: Python<'py>,
        at: AddressArgument,
        offset: u32,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.0.call(py, |raw| raw.check(at.0, offset, length, 0))?;
        new_bytes(py, length, |into| self.0.call(py, |raw| raw.read_at(at.0, offset, into)))
    }

    fn read_page_into(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        buffer: Bound<'_, PyAny>,
        offset: u32,
    ) -> PyResult<()> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        self.0.call(py, |raw| raw.read_at(at.0, offset, into))
    }

    fn write_page(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        data: Bound<'_, PyAny>,
        oob: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (data, oob) = (Memory::of(&data)?, Memory::of(&oob)?);
        let (data, oob) = (data.bytes(), oob.bytes());
        self.0.call(py, |raw| raw.write_page_and_oob(at.0, data, oob))
    }

    fn read_oob<'py>(
        &self,
        py: Python<'py>,
        at: AddressArgument,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.0.call(py, |raw| raw.check(at.0, 0, 0, length))?;
        new_bytes(py, length, |into| {
            self.0.call(py, |raw| raw.read_page_and_oob(at.0, &mut [], into))
        })
    }

    fn erase_block(&self, py: Python<'_>, at: AddressArgument) -> PyResult<()> {
        self.0.call(py, |raw| raw.erase_block(at.0))
    }

    fn write_pointer(&self, py: Python<'_>, at: AddressArgument) -> PyResult<u32> {
        self.0.call(py, |raw| raw.write_pointer(at.0))
    }

    fn erase_count(&self, py: Python<'_>, at: AddressArgument) -> PyResult<u32> {
        self.0.call(py, |raw| raw.erase_count(at.0))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, Raw::sync)
    }

    /// Writes buffers, each of whole pages, one after the other into a block.
    fn write_vectored(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        parts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let parts = memories(&parts)?;
        let parts: Vec<&[u8]> = parts.iter().map(Memory::bytes).collect();
        self.0.call(py, |raw| raw.write_vectored(at.0, &parts).map_err(first_error))
    }

    /// Reads pages, each anywhere, one after the other into a buffer.
    fn read_pages_into(
        &self,
        py: Python<'_>,
        pages: Vec<AddressArgument>,
        buffer: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        let pages: Vec<Address> = pages.into_iter().map(|at| at.0).collect();
        self.0.call(py, |raw| raw.read_pages(&pages, into).map_err(first_error))
    }

    fn erase_blocks(&self, py: Python<'_>, blocks: Vec<AddressArgument>) -> PyResult<()> {
        let blocks: Vec<Address> = blocks.into_iter().map(|at| at.0).collect();
        self.0.call(py, |raw| raw.erase_blocks(&blocks).map_err(first_error))
    }

    /// A queue of at most `depth` commands.
    fn queue(&self, py: Python<'_>, depth: usize) -> PyResult<CommandQueue> {
        py.detach(|| CommandQueue::of_raw(self.0.share()?, depth))
    }

    /// Whether the share has a clock, and its time in ns, after `pass_ns`.
    fn time(&self, py: Python<'_>, pass_ns: Option<u64>) -> PyResult<(bool, u64)> {
        self.0.call(py, |raw| time_of(raw.share(), pass_ns))
    }

    fn grow(&self, py: Python<'_>, luns: u32) -> PyResult<()> {
        self.0.change(py, |raw| raw.grow(luns))
    }

    fn shrink(&self, py: Python<'_>, luns: u32) -> PyResult<()> {
        self.0.change(py, |raw| raw.shrink(luns))
    }
}

/// A share at the function level.
#[pyclass(module = "prism._prism", frozen)]
pub struct FunctionLevel(Open<Function>);

/// The whole page or block.
fn unit(block: bool) -> Unit {
    if block { Unit::Block } else { Unit::Page }
}

#[pymethods]
impl FunctionLevel {
    #[new]
    fn new(py: Python<'_>, share: Bound<'_, FlashShare>) -> PyResult<Self> {
        let share = share.get().take()?;
        Ok(Self(Open::new(py.detach(|| Function::open(share)).map_err(failed)?)))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }

    fn geometry(&self, py: Python<'_>) -> PyResult<ShareShape> {
        self.0.call(py, |function| Ok(shape(&function.geometry())))
    }

    /// Allocates a block, or the next page of an open one, on a channel or on any.
    fn allocate(
        &self,
        py: Python<'_>,
        channel: Option<u32>,
        block: bool,
    ) -> PyResult<(PageAddress, u32)> {
        let channel = channel.map_or(Channel::Any, Channel::Number);
        let allocated =
            self.0.call(py, |function| function.address_mapper(channel, unit(block)))?;
        Ok((page_address(allocated.at), allocated.free_left))
    }

    fn write(&self, py: Python<'_>, at: AddressArgument, data: Bound<'_, PyAny>) -> PyResult<()> {
        let data = Memory::of(&data)?;
        let data = data.bytes();
        self.0.call(py, |function| function.write(at.0, data))
    }

    fn read<'py>(
        &self,
        py: Python<'py>,
        at: AddressArgument,
        length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.0.call(py, |function| function.check(at.0, length))?;
        new_bytes(py, length, |into| self.0.call(py, |function| function.read(at.0, into)))
    }

    fn read_into(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        buffer: Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let mut memory = Memory::writable(&buffer)?;
        let into = memory.bytes_mut();
        self.0.call(py, |function| function.read(at.0, into))
    }

    fn trim(&self, py: Python<'_>, at: AddressArgument, block: bool) -> PyResult<()> {
        self.0.call(py, |function| function.trim(at.0, unit(block)))
    }

    fn drain(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, Function::drain)
    }

    /// The allocated blocks, each with its next page.
    fn allocated(&self, py: Python<'_>) -> PyResult<Vec<PageAddress>> {
        let blocks = self.0.call(py, Function::allocated)?;
        Ok(blocks.into_iter().map(|(at, next)| page_address(at.with_page(next))).collect())
    }

    /// Erased blocks of a channel, over-provisioning included.
    fn free(&self, py: Python<'_>, channel: u32) -> PyResult<u32> {
        self.0.call(py, |function| function.free(channel))
    }

    fn set_over_provisioning(&self, py: Python<'_>, percent: u32) -> PyResult<u32> {
        self.0.call(py, |function| function.set_ops(percent))
    }

    /// Exchanges pairs of blocks; returns how many.
    fn wear_level(&self, py: Python<'_>, max_pairs: u32, min_gap: u32) -> PyResult<usize> {
        let levelled = self.0.call(py, |function| function.wear_level(max_pairs, min_gap))?;
        Ok(levelled.pairs.len())
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, Function::sync)
    }

    /// Writes buffers, each of whole pages, one after the other into a block.
    fn write_vectored(
        &self,
        py: Python<'_>,
        at: AddressArgument,
        parts: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let parts = memories(&parts)?;
        let parts: Vec<&[u8]> = parts.iter().map(Memory::bytes).collect();
        self.0.call(py, |function| function.write_vectored(at.0, &parts))
    }

    /// A queue of at most `depth` commands.
    fn queue(&self, py: Python<'_>, depth: usize) -> PyResult<CommandQueue> {
        py.detach(|| CommandQueue::of_function(self.0.share()?, depth))
    }

    /// Whether the share has a clock, and its time in ns, after `pass_ns`.
    fn time(&self, py: Python<'_>, pass_ns: Option<u64>) -> PyResult<(bool, u64)> {
        self.0.call(py, |function| time_of(&function.share(), pass_ns))
    }
}
