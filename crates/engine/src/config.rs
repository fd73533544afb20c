//! The configuration of controller and simulated flash: timing, scheduling, cleaning.

use prism_base::{Bytes, Nanos};
use prism_nand::Timing;

prism_base::named_enum! {
    /// Which of several waiting operations begins first, by its name in device files.
    pub enum Scheduler {
        /// First come, first served.
        Fcfs = "fcfs",
        /// Host reads go before programs, erases and copies of the same die.
        ReadFirst = "read-first",
        /// Of the commands queued in the drive, the one with the shortest wait for its die (SWTF;
        /// Rajimwale, Prabhakaran, Davis, USENIX ATC'09, section 3.2).
        ShortestWait = "swtf",
        /// Commands marked urgent, and reads for them, go first.
        Priority = "priority",
    }
}

prism_base::named_enum! {
    /// Which of several uses that wait for a channel begins first. A channel sends the command
    /// cycles of an operation (command and address), and transfers data: that of a program to the
    /// die, that of a read, once its array is done, from the die. Uses of one kind are served in
    /// the order of requests.
    #[derive(Default)]
    pub enum ChannelArbitration {
        /// Commands: they interrupt a transfer of data, which continues after them.
        #[default]
        CommandsFirst = "commands-first",
        /// The one requested first. The data of a program follows its command.
        Fifo = "fifo",
        /// The data of reads. A command waits until the channel is free and no data of a read
        /// waits; the data of a program follows its command.
        DataFirst = "data-first",
    }
}

/// The sector of [`ReadTransfer::Sectors`].
pub const SECTOR: Bytes = Bytes(512);

prism_base::named_enum! {
    /// What the read of a part of a mapping unit transfers over the channel.
    #[derive(Default)]
    pub enum ReadTransfer {
        /// The whole unit, or of a unit of several pages those that are needed.
        #[default]
        Unit = "unit",
        /// The sectors of 512 bytes that are needed.
        Sectors = "sectors",
    }
}

/// Suspension of programs or erases for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Whether programs are suspended.
    pub programs: bool,
    /// Whether erases are suspended.
    pub erases: bool,
    /// How long suspending takes before the read begins. Resuming takes no time.
    pub cost: Nanos,
}

prism_base::named_enum! {
    /// When copies of a die group may be made between its low and its critical number of erased
    /// blocks. Below the critical one they always may.
    pub enum CleaningMode {
        /// Whenever there are few erased blocks, interleaved with host operations.
        Foreground = "foreground",
        /// One step at a time, while no host operation waits for the die group.
        Partial = "partial",
        /// While no urgent command is in the drive (ATC'09, section 3.6).
        PriorityAware = "priority-aware",
    }
}

/// When to clean. The low and high watermarks are those of the FTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// The mode between the low and the critical number of erased blocks.
    pub mode: CleaningMode,
    /// Below this number of erased blocks of a die group, cleaning has priority over the host.
    pub free_blocks_critical: u32,
    /// In idle time, cleans until each die group has this many erased blocks; 0 for never.
    pub free_blocks_idle: u32,
}

/// Timing of SLC blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTiming {
    /// Array to page register, of any page.
    pub t_read: Nanos,
    /// Page register to array, per level of a program unit; the levels are programmed one after
    /// another.
    pub t_program: Nanos,
    /// Erase of a block.
    pub t_erase: Nanos,
}

/// The configuration of a simulated drive's controller and flash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Timing of the flash.
    pub timing: Timing,
    /// Timing of its SLC blocks, if it has any.
    pub slc: Option<SlcTiming>,
    /// Which use of a channel begins first.
    pub channel_arbitration: ChannelArbitration,
    /// What the read of a part of a unit transfers.
    pub read_transfer: ReadTransfer,
    /// Which operation begins first.
    pub scheduler: Scheduler,
    /// Cache read: the next read of a die begins while the data of the last one is transferred.
    pub cache_read: bool,
    /// Cache program: the data of the next program is transferred while the die programs.
    pub cache_program: bool,
    /// Copies within a plane are not transferred over the channel.
    pub copy_back: bool,
    /// Suspension of programs and erases for reads.
    pub suspend: Option<Suspend>,
    /// When to clean.
    pub cleaning: Cleaning,
    /// Program units of a wordline that take effect together, when the last of them is programmed,
    /// because a loss of power during one may destroy the earlier ones. 1 if no program shares a
    /// wordline, or if capacitors prevent that.
    pub wordline_program_units: u32,
}

impl EngineConfig {
    /// First come, first served, without overlap, cleaning in the foreground.
    #[must_use]
    pub fn simple(timing: Timing) -> Self {
        Self {
            timing,
            slc: None,
            channel_arbitration: ChannelArbitration::default(),
            read_transfer: ReadTransfer::default(),
            scheduler: Scheduler::Fcfs,
            cache_read: false,
            cache_program: false,
            copy_back: false,
            suspend: None,
            cleaning: Cleaning {
                mode: CleaningMode::Foreground,
                free_blocks_critical: 2,
                free_blocks_idle: 0,
            },
            wordline_program_units: 1,
        }
    }
}
