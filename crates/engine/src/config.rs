//! What an engine in time is told: how dies work, what goes first, when to clean.

use prism_base::Nanos;
use prism_nand::Timing;

/// Which operation goes first where several wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// First come, first served.
    Fcfs,
    /// Reads of the host go before programs, erases and copies of the same die.
    ReadFirst,
    /// Of the commands that wait in the drive, the one whose die is free soonest
    /// (SWTF; Rajimwale, Prabhakaran, Davis, USENIX ATC'09, section 3.2).
    ShortestWait,
    /// Commands marked urgent, and reads for them, go first.
    Priority,
}

impl Scheduler {
    /// Every scheduler.
    pub const ALL: [Self; 4] = [Self::Fcfs, Self::ReadFirst, Self::ShortestWait, Self::Priority];

    /// The name in device files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::ReadFirst => "read-first",
            Self::ShortestWait => "swtf",
            Self::Priority => "priority",
        }
    }
}

/// A program or an erase that stops for reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspend {
    /// Programs do.
    pub programs: bool,
    /// Erases do.
    pub erases: bool,
    /// How long stopping takes before the read begins. Going on takes nothing.
    pub cost: Nanos,
}

/// When copies of a die group may be made between its low and its critical number of erased
/// blocks. Below the critical one they always may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CleaningMode {
    /// Whenever erased blocks are low, in turn with what the host wants.
    Foreground,
    /// A step at a time, while no operation of the host waits on the die group.
    Partial,
    /// While no urgent command is in the drive (ATC'09, section 3.6).
    PriorityAware,
}

impl CleaningMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Foreground, Self::Partial, Self::PriorityAware];

    /// The name in device files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Foreground => "foreground",
            Self::Partial => "partial",
            Self::PriorityAware => "priority-aware",
        }
    }
}

/// When to clean. The low and high watermarks are the FTL's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleaning {
    /// Between low and critical.
    pub mode: CleaningMode,
    /// Below so many erased blocks of a die group, cleaning waits for nobody.
    pub free_blocks_critical: u32,
    /// In idle time, until so many blocks of each die group are erased; 0 for never.
    pub free_blocks_idle: u32,
}

/// Times of SLC blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlcTiming {
    /// Array to page register, of any page.
    pub t_read: Nanos,
    /// Page register to array, of one level of a program unit; a program unit takes one after
    /// another.
    pub t_program: Nanos,
    /// Erase of a block.
    pub t_erase: Nanos,
}

/// How the flash is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// Times of the flash.
    pub timing: Timing,
    /// Those of its SLC blocks, where it has any.
    pub slc: Option<SlcTiming>,
    /// What goes first.
    pub scheduler: Scheduler,
    /// The next read of a die begins while the data of the last one leaves it.
    pub cache_read: bool,
    /// The data of the next program goes into the die while it programs.
    pub cache_program: bool,
    /// Copies within a plane do not cross the channel.
    pub copy_back: bool,
    /// Programs and erases stop for reads.
    pub suspend: Option<Suspend>,
    /// When to clean.
    pub cleaning: Cleaning,
    /// Program units of a wordline that take effect together, when the last of them is programmed,
    /// since a loss of power amid one may take those before it. 1 where none does, or where
    /// capacitors prevent it.
    pub wordline_program_units: u32,
}

impl EngineConfig {
    /// First come, first served, nothing overlapped, cleaning in the foreground.
    #[must_use]
    pub fn simple(timing: Timing) -> Self {
        Self {
            timing,
            slc: None,
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
