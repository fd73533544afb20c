//! Layouts of file systems: superblocks built by hand against what the tools of the file
//! systems print, real traces, the text form, and damaged images.

mod ext4;
mod f2fs;
mod fuzz;
mod image;
mod text;
mod traces;
mod xfs;
