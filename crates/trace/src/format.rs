//! The formats that are read, by name. Which parser reads which: `formats.rs`.

prism_base::named_enum! {
    /// The formats that are read.
    pub enum Format {
        /// ftrace text and `trace-cmd report`.
        Ftrace = "ftrace",
        /// `perf script`.
        PerfScript = "perf-script",
        /// blkparse text, default form or a given `-f` string.
        Blkparse = "blkparse",
        /// blktrace binary, version 7 or 8, either byte order.
        Blktrace = "blktrace",
        /// fio iolog, version 2 or 3.
        FioIolog = "fio-iolog",
        /// MSR Cambridge CSV.
        Msr = "msr",
        /// Alibaba block traces CSV.
        Alibaba = "alibaba",
        /// Tencent CBS CSV.
        Tencent = "tencent",
        /// MQSim ASCII.
        Mqsim = "mqsim",
        /// SYSTOR '17 CSV.
        Systor17 = "systor17",
        /// K5cloud CSV.
        K5cloud = "k5cloud",
        /// SPC traces, as of the UMass repository.
        Spc = "spc",
        /// DiskSim ASCII.
        Disksim = "disksim",
        /// SSDsim ASCII, with the same columns as MQSim's.
        Ssdsim = "ssdsim",
        /// CloudPhysics, binary, version 1 or 2.
        Vscsi = "vscsi",
        /// Florida International University.
        Fiu = "fiu",
        /// MiDAS, with TRIM and streams.
        Midas = "midas",
        /// Baleen's traces of Tectonic.
        Baleen = "baleen",
        /// Thesios CSV.
        Thesios = "thesios",
        /// Block events of cacheMon's io-tracer.
        IoTracer = "io-tracer",
        /// libCacheSim's oracleGeneral, binary.
        OracleGeneral = "oracle-general",
        /// libCacheSim's lcs, binary.
        Lcs = "lcs",
        /// biosnoop of bcc, in Python or of libbpf-tools.
        Biosnoop = "biosnoop",
        /// Disk events of Windows as CSV, of xperf and MSPS.
        Etw = "etw",
        /// Events for the simulator of WiscSee.
        Wiscsee = "wiscsee",
        /// Any text described by a TOML map.
        Map = "map",
    }
}

impl Format {
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
}
