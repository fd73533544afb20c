//! stub
use prism_base::*;
use prism_nand::Timing;
#[derive(Debug)]
pub struct Timeline(Timing);
pub struct Span {
    pub begin: SimTime,
    pub end: SimTime,
}
pub struct Program {
    pub sent: SimTime,
    pub end: SimTime,
}
impl Timeline {
    pub fn new(_c: u32, _d: u32, t: Timing) -> Self {
        Self(t)
    }
    pub fn read(&mut self, _die: u32, _page: u32, _b: Bytes, ready: SimTime) -> Span {
        Span { begin: ready, end: ready }
    }
    pub fn program(&mut self, _die: u32, _page: u32, _b: Bytes, ready: SimTime) -> Program {
        Program { sent: ready, end: ready }
    }
    pub fn erase(&mut self, _die: u32, ready: SimTime) -> Span {
        Span { begin: ready, end: ready }
    }
}
