//! Notices to the kernel about what it has of a file.

use std::sync::OnceLock;

use fuser::{INodeNo, Notifier};

/// The kernel of a mount; none before there is a mount.
#[derive(Default)]
pub struct Kernel(OnceLock<Notifier>);

impl Kernel {
    /// Notices go to this kernel.
    pub fn begin(&self, notifier: Notifier) {
        // It is called once for each mount.
        let _ = self.0.set(notifier);
    }

    /// The attributes that the kernel has of a file are not valid any more. It takes the notice at
    /// once if a request of the file waits for its answer, or the file is open.
    pub fn drop_attributes(&self, file: u32) {
        // A negative offset stands for no content.
        self.notify(file, -1);
    }

    /// Makes the kernel write what it has of a file in its cache only, and returns when that is
    /// done. Other threads have to answer its writes.
    pub fn write_back(&self, file: u32) {
        self.notify(file, 0);
    }

    fn notify(&self, file: u32, offset: i64) {
        // A kernel that has forgotten the file has no attributes and no content of it.
        let notify = |to: &Notifier| to.inval_inode(INodeNo(file.into()), offset, 0);
        let _ = self.0.get().map(notify);
    }
}
