//! The formats that are read, by name. Which parser reads which: `formats.rs`.

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// ftrace text and `trace-cmd report`.
    Ftrace,
    /// `perf script`.
    PerfScript,
    /// blkparse text, default form or a given `-f` string.
    Blkparse,
    /// blktrace binary, version 7 or 8, either byte order.
    Blktrace,
    /// fio iolog, version 2 or 3.
    FioIolog,
    /// MSR Cambridge CSV.
    Msr,
    /// Alibaba block traces CSV.
    Alibaba,
    /// Tencent CBS CSV.
    Tencent,
    /// MQSim ASCII.
    Mqsim,
    /// SYSTOR '17 CSV.
    Systor17,
    /// K5cloud CSV.
    K5cloud,
    /// SPC traces, as of the UMass repository.
    Spc,
    /// DiskSim ASCII.
    Disksim,
    /// SSDsim ASCII, with the same columns as MQSim's.
    Ssdsim,
    /// CloudPhysics, binary, version 1 or 2.
    Vscsi,
    /// Florida International University.
    Fiu,
    /// MiDAS, with TRIM and streams.
    Midas,
    /// Baleen's traces of Tectonic.
    Baleen,
    /// Thesios CSV.
    Thesios,
    /// Block events of cacheMon's io-tracer.
    IoTracer,
    /// libCacheSim's oracleGeneral, binary.
    OracleGeneral,
    /// libCacheSim's lcs, binary.
    Lcs,
    /// biosnoop of bcc, in Python or of libbpf-tools.
    Biosnoop,
    /// Disk events of Windows as CSV, of xperf and MSPS.
    Etw,
    /// Events for the simulator of WiscSee.
    Wiscsee,
    /// Any text described by a TOML map.
    Map,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 26] = [
        Self::Ftrace,
        Self::PerfScript,
        Self::Blkparse,
        Self::Blktrace,
        Self::FioIolog,
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Mqsim,
        Self::Systor17,
        Self::K5cloud,
        Self::Spc,
        Self::Disksim,
        Self::Ssdsim,
        Self::Vscsi,
        Self::Fiu,
        Self::Midas,
        Self::Baleen,
        Self::Thesios,
        Self::IoTracer,
        Self::OracleGeneral,
        Self::Lcs,
        Self::Biosnoop,
        Self::Etw,
        Self::Wiscsee,
        Self::Map,
    ];

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ftrace => "ftrace",
            Self::PerfScript => "perf-script",
            Self::Blkparse => "blkparse",
            Self::Blktrace => "blktrace",
            Self::FioIolog => "fio-iolog",
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Mqsim => "mqsim",
            Self::Systor17 => "systor17",
            Self::K5cloud => "k5cloud",
            Self::Spc => "spc",
            Self::Disksim => "disksim",
            Self::Ssdsim => "ssdsim",
            Self::Vscsi => "vscsi",
            Self::Fiu => "fiu",
            Self::Midas => "midas",
            Self::Baleen => "baleen",
            Self::Thesios => "thesios",
            Self::IoTracer => "io-tracer",
            Self::OracleGeneral => "oracle-general",
            Self::Lcs => "lcs",
            Self::Biosnoop => "biosnoop",
            Self::Etw => "etw",
            Self::Wiscsee => "wiscsee",
            Self::Map => "map",
        }
    }

    /// Whether several files of this format can follow one another as one trace: not if a file
    /// has to end with a whole record.
    #[must_use]
    pub fn joins_files(self) -> bool {
        !matches!(self, Self::Vscsi | Self::OracleGeneral | Self::Lcs)
    }

    /// Whether a file of this format is text.
    #[must_use]
    pub fn is_text(self) -> bool {
        self.joins_files() && self != Self::Blktrace
    }

    /// The format called `name`, as [`Format::name`] prints it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}
