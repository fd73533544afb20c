//! Layouts of file systems: superblocks built by hand against what the tools of the file
//! systems print, real traces, the text form, and damaged images.

mod ext4;
mod f2fs;
mod fuzz;
mod image;
mod text;
mod traces;
mod xfs;

use prism_trace::FsLayout;

/// The names that a layout gives to a byte; `None` outside of all regions.
trait Names {
    fn label(&self, offset: u64) -> Option<&str>;
    fn group(&self, offset: u64) -> Option<&str>;
}

impl Names for FsLayout {
    fn label(&self, offset: u64) -> Option<&str> {
        let region = self.regions().iter().find(|r| (r.start..r.end).contains(&offset))?;
        Some(&region.label)
    }

    fn group(&self, offset: u64) -> Option<&str> {
        let region = self.regions().iter().find(|r| (r.start..r.end).contains(&offset))?;
        Some(&region.group)
    }
}
