//! The tables of words: what is found, and what to write instead.

/// A word, or a phrase, that is not written.
pub struct Word {
    /// A regular expression; `_` belongs to the word around it, so names in code need
    /// `[ _]?` where prose has a blank.
    pub found: &'static str,
    /// What to write instead.
    pub write: &'static str,
    /// A text in which the expression has to be found.
    pub example: &'static str,
}

impl Word {
    /// What to say where `text` was found.
    pub fn message(&self, text: &str) -> String {
        format!("{text:?}: write {:?}", self.write)
    }
}

/// Files in which a word is meant as it is.
pub struct Exception {
    /// How the paths of the files start.
    path: &'static str,
    /// The expression of the word.
    found: &'static str,
    /// Why it stays.
    #[allow(dead_code, reason = "it is for readers")]
    reason: &'static str,
}

impl Exception {
    pub fn covers(&self, name: &str, word: &Word) -> bool {
        name.starts_with(self.path) && self.found == word.found
    }
}

const fn word(found: &'static str, write: &'static str, example: &'static str) -> Word {
    Word { found, write, example }
}

/// Words that are nowhere in the tree.
pub const REFUSED: &[Word] = &[
    word(r"\bon rereading\b", "review:", "On rereading: fixed"),
    word(r"\basks? ahead\b", "prefetches", "asks ahead"),
    word(r"\bhandle that is good\b", "a valid handle", "a handle that is good"),
    word(r"\breason in words\b", "reason as text", "the reason in words"),
    word(r"\bgoes? home\b", "is written to its final place", "what the journal held goes home"),
    word(r"\bpolite kill\b", "SIGTERM", "Ctrl-C, or a polite kill"),
    word(r"\blow byte first\b", "little-endian", "all numbers have their low byte first"),
    word(r"\bhigh byte first\b", "big-endian", "all numbers have their high byte first"),
    word(r"\bone file a processor\b", "one file per CPU", "one file a processor"),
    word(r"\blines? of the cache\b", "cache line", "a line of the cache"),
    word(r"\b(?:first|second) cache\b", "L1, L2", "misses of the first cache"),
    word(r"\bprocessor time\b", "CPU time", "processor time"),
    word(r"\bprocessor_(?:time|seconds)\b", "cpu_time, cpu_seconds", "processor_seconds()"),
    word(r"\btold apart\b", "distinguished", "they are told apart"),
    word(r"\bwords? of fio\b", "fio options", "the words of fio"),
    word(r"\bfio'?s? words?\b", "fio options", "fio's words"),
    word(r"\bfio[-_]words\b", "fio_options", "fio-words.md"),
    word(r"\bwords? of (?:a|the) job\b", "job option", "a word of a job"),
    word(r"\bunder[ _-]?way", "in flight", "operations under way, UnderWay"),
    word(r"\bbits? an? cell\b", "SLC; bits per cell", "blocks of one bit a cell"),
    word("word[ _-]lines?", "wordline", "a word line, word_line"),
    word(r"\b(?:by|in) turns\b", "alternately, interleaved", "they run by turns"),
    word(
        r"\bdr(?:aws?|ew|awn|awing) lots\b",
        "randomised, chooses at random",
        "policies that draw lots",
    ),
    word(
        r"\b(?:is|are|be|runs?|stays?|kept|compiled) (?:in|out of) line\b",
        "inlined, not inlined",
        "every read is in line",
    ),
    word(r"\bwho asks\b", "the caller", "who asks now"),
    word(
        r"(?:[.;:(] |\b(?:to|of|by|for|from|than) )who (?:asks|wants|waits|reads|writes|needs)\b",
        "the caller, the application, a reader that ...",
        "returns it to who waits",
    ),
    word(r"\bwhoever\b", "the caller, any user that ...", "whoever has it"),
    word(r"\bsomebody\b", "the thing that does it: a request, a caller, a user", "somebody waits"),
    word(r"\bnobody\b", "no request, no caller, no user", "nobody asked"),
    word(r"\bmend(?:s|ed|ing)?\b", "fix, repair", "the bug is mended"),
    word(r"\b(?:WA|p99|life) then\b", "WA after, p99 after, life after", "WA then"),
    word(r"(?:\b|_)lanes?(?:\b|_)", "die group", "a lane, free_lanes"),
    word(r"(?-i:\bLane(?:Id|s)?\b|[a-z]Lanes?\b)", "DieGroup", "LaneId"),
    word(r"\bhomeless\b", "units to relocate", "homeless units"),
    word(r"\browless\b", "jobs without a program unit", "rowless jobs"),
    word(r"\bshelter", "relocation block", "the shelter"),
    word(r"\bhost[ _]?logs?\b", "host FTL", "the host log, HostLog"),
    word(r"\bhost's (?:own )?log\b", "host FTL", "the host's log"),
    word(r"\blog of the host\b", "host FTL", "a log of the host's"),
    word(
        r"\bmapping by (?:unit|page|block|zone)s?\b",
        "page-level, block-level, zone mapping",
        "a mapping by unit",
    ),
    word(r"\bstations?\b", "array and page register", "the stations of a die"),
    word(r"\b(?:saved|kept) states?\b", "snapshot", "a saved state"),
    word(
        r"\blevels? of (?:a|the|its|each) word ?lines?\b",
        "page of the wordline (lower, middle, upper)",
        "the level of a word line",
    ),
    word(r"\bforesees\b", "reserves_transfer_early", "foresees"),
    word(r"\bdelicate\b", "has_faults_or_wordlines", "delicate"),
    word(r"(?-i:\bRemains\b)", "FlashScan, CrashImage", "struct Remains"),
    word(r"(?-i:\bTrouble\b)", "ReadRecovery", "struct Trouble"),
    word(r"(?-i:\bBeside\b)", "Comparison", "struct Beside"),
    word(r"\bbeside\b", "next to, alongside", "it is kept beside the trace"),
    word(
        r"\b(?:struct|enum|type) (?-i:Owed|Asked|Taken|Standing|Found|Place|Outcome|Told)\b",
        "a noun of the field that says what it is",
        "enum Taken",
    ),
    word(r"(?-i:\bLayerConfig\b|\benum Layer\b|\bLayer::)", "Ftl, FtlConfig", "Layer::Pages"),
    word(r"\btranslation layers?\b", "FTL", "a translation layer"),
    word(r"(?-i:\bLabelCache\b)", "HeaderCache", "LabelCache"),
    word(r"\bmod border\b|\bcrate::border\b", "ffi_boundary", "mod border;"),
    word(r"\bin the world\b", "in real time", "takes its time in the world"),
    word(r"\btouch(?:es|ed)? the world\b", "uses files, clocks or threads", "touches the world"),
    word(r"\bput(?:s|ting)? right\b", "corrected, repaired", "errors are put right"),
    word(r"\btold\b", "reported, passed, given", "it is told how many"),
    word(r"\btells\b", "reports, says, shows", "the trace tells"),
    word(
        r"\bstands? (?:in|at|on|before|after|behind|next|first|there|where|above|below)\b",
        "is, lies, is stored",
        "it stands in the header",
    ),
    word(r"\bwhat (?:waits|comes|asks|wants)\b", "the queue, the next request", "what waits"),
    word(r"\bpassed over\b", "skipped, ignored", "worn blocks are passed over"),
    word(r"\bput(?:s|ting)? together\b", "assembled, built", "values are put together here"),
    word(
        r"\b(?:of|every|after|below|above|with|by|at) so many\b",
        "of this many, of N; name the number",
        "a header of so many bytes",
    ),
    word(r"\bthe like\b", "such as ..., similar", "and the like"),
    word(r"\bnothing of\b", "no part of; nothing about", "says nothing of it"),
];

/// Files that may have a word.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        path: "GLOSSARY.md",
        found: r"\btranslation layers?\b",
        reason: "it says what FTL is short for",
    },
    Exception {
        path: "crates/present/src/import/",
        found: r"(?:\b|_)lanes?(?:\b|_)",
        reason: "MQSim's setting PCIe_Lane_Count has this name",
    },
    Exception {
        path: "docs/import.md",
        found: r"(?:\b|_)lanes?(?:\b|_)",
        reason: "MQSim's setting PCIe_Lane_Count has this name",
    },
    Exception {
        path: "crates/host/bpf/capture.bpf.c",
        found: r"\btold\b",
        reason: "capture.bpf.o has the digest of this text, so a change needs the BPF compiler",
    },
];
