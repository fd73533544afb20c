//! `prism fs info`: space, wear and writes of a file system.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;
use prism_base::Bytes;
use prism_fs::{Access, Config, Damage};
use prism_fsmount::DeviceFile;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::JsonArg;

/// Arguments of `prism fs info`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "A file system that is mounted shows the same by
`getfattr -n user.prism.stats DIR`.

Example:
  prism fs info disk.prism --json -")]
pub struct Args {
    /// The file of the file system, which must not be mounted
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    json: JsonArg,
}

#[derive(Serialize)]
struct Info {
    file: String,
    /// The number of the file system.
    identity: String,
    /// When it was made, in seconds since 1970.
    made: i64,
    /// Whether the last mount ended by an unmount.
    was_unmounted: bool,
    segment_bytes: u64,
    segments: usize,
    /// Segments without data.
    segments_empty: usize,
    /// Bytes that files and their metadata can use.
    space_bytes: u64,
    space_free_bytes: u64,
    nodes: u64,
    /// Bytes written, by cause.
    written_bytes: Written,
    /// Bytes written for each byte of callers; null if these wrote nothing.
    write_amplification: Option<f64>,
    /// Erases of the mean block, and of the block erased most.
    erases_mean: f64,
    erases_max: u32,
    /// Bytes of memory that a mount needs for the node table.
    memory_table_bytes: u64,
    /// Bytes of memory for caches at most.
    memory_cache_bytes: u64,
    /// What was damaged in one copy of the tables of the device's file, as sentences.
    damage: Vec<String>,
}

#[derive(Serialize)]
struct Written {
    data: u64,
    cleaning: u64,
    folders: u64,
    nodes: u64,
    node_table: u64,
    checkpoints: u64,
    summaries: u64,
}

impl Info {
    fn text(&self) -> String {
        let bytes = |bytes: u64| Bytes(bytes).to_string();
        let written = &self.written_bytes;
        let erases = format!("mean {:.2}, most {}", self.erases_mean, self.erases_max);
        let memory = format!(
            "{} for the node table, caches of up to {}",
            bytes(self.memory_table_bytes),
            bytes(self.memory_cache_bytes)
        );
        let segments = format!(
            "{} of {}, {} without data",
            self.segments,
            bytes(self.segment_bytes),
            self.segments_empty
        );
        let amplification =
            self.write_amplification.map_or("no data written".into(), |wa| format!("{wa:.3}"));
        let last = if self.was_unmounted { "ended by an unmount" } else { "did not unmount" };
        let rows = [
            ("Number", self.identity.clone()),
            ("Last mount", last.into()),
            ("Segments", segments),
            ("Space", bytes(self.space_bytes)),
            ("Free", bytes(self.space_free_bytes)),
            ("Files and nodes", self.nodes.to_string()),
            ("Written: data", bytes(written.data)),
            ("  cleaning", bytes(written.cleaning)),
            ("  folders", bytes(written.folders)),
            ("  nodes", bytes(written.nodes)),
            ("  node table", bytes(written.node_table)),
            ("  checkpoints", bytes(written.checkpoints)),
            ("  summaries", bytes(written.summaries)),
            ("Write amplification", amplification),
            ("Erases of a block", erases),
            ("Memory of a mount", memory),
        ];
        let mut text = format!("{}\n", self.file);
        for (name, value) in rows {
            writeln!(text, "  {name:20} {value}").expect("memory takes any text");
        }
        for damage in &self.damage {
            writeln!(text, "  {damage}").expect("memory takes any text");
        }
        text
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Usage`] if the file cannot be read.
pub fn run(args: &Args) -> Result<(), Failure> {
    let file = DeviceFile::open(&args.file, Access::ReadOnly).map_err(Failure::usage)?;
    let damage = file.damage().to_vec();
    let device = file.file_system(Config::NORMAL, Damage::Refuse).map_err(Failure::usage)?;
    let fs = &device.fs;
    let (space, counts, used) = (fs.space(), fs.counts(), fs.segment_use());
    let (memory_table_bytes, memory_cache_bytes) = fs.memory();
    let bytes = |blocks: u64| blocks * 4096;
    let erases = device.flash.as_ref().map_or(Vec::new(), |flash| flash.erase_counts());
    let sum: f64 = erases.iter().map(|&erases| f64::from(erases)).sum();
    let info = Info {
        file: args.file.display().to_string(),
        identity: format!("{:016x}", fs.id()),
        made: fs.made(),
        was_unmounted: fs.was_unmounted(),
        segment_bytes: bytes(fs.blocks_per_segment().into()),
        segments: used.len(),
        segments_empty: used.iter().filter(|&&live| live == 0).count(),
        space_bytes: bytes(space.blocks),
        space_free_bytes: bytes(space.free),
        nodes: space.nodes,
        written_bytes: Written {
            data: bytes(counts.data),
            cleaning: bytes(counts.cleaned),
            folders: bytes(counts.folders),
            nodes: bytes(counts.nodes),
            node_table: bytes(counts.table),
            checkpoints: bytes(counts.roots),
            summaries: bytes(counts.summaries),
        },
        write_amplification: (counts.data > 0).then(|| counts.total() as f64 / counts.data as f64),
        erases_mean: sum / erases.len().max(1) as f64,
        erases_max: erases.iter().copied().max().unwrap_or(0),
        memory_table_bytes,
        memory_cache_bytes,
        damage,
    };
    Ok(args.json.write(&info, &info.text())?)
}
