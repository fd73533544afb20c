//! One flow of an MQSim workload.
//!
//! Source: the README of CMU-SAFARI/MQSim and `src/host/IO_Flow_Synthetic.cpp`. Sizes are sectors
//! of 512 bytes, times nanoseconds, bandwidths bytes per second.

use super::device_file::bare_time;
use super::error::Result;
use super::settings::{Settings, comment, without_control};

/// Settings that a job cannot express.
pub const WITHOUT_COUNTERPART: &[(&str, &str)] = &[
    ("Device_Level_Data_Caching_Mode", "the drive decides; see drive.write_cache"),
    ("Priority_Class", "the classes below URGENT are equal"),
    ("Percentage_of_Hot_Region", "only used with RANDOM_HOTCOLD"),
    ("Variance_Request_Size", "only used with NORMAL sizes"),
    ("Address_Alignment_Unit", "only used with Generated_Aligned_Addresses"),
    ("Average_No_of_Reqs_in_Queue", "only used with QUEUE_DEPTH"),
    ("Bandwidth", "only used with BANDWIDTH"),
    ("Intensity", "only used with BANDWIDTH"),
    ("Total_Requests_To_Generate", "only used where Stop_Time is 0"),
];

/// Most planes that a flow may name: more than any drive has, few enough to count.
const PLANES_MAX: usize = 1 << 20;

/// A flow.
pub struct Flow {
    /// Its settings.
    pub settings: Settings,
    /// Whether it replays a trace.
    pub is_trace: bool,
    /// Percent of the drive that hold data before the run.
    pub occupancy: u32,
    /// What is approximate.
    pub notes: Vec<String>,
    ids: [Vec<u32>; 4],
}

impl Flow {
    /// Reads what the parts of all flows depend on.
    pub fn read(mut settings: Settings, is_trace: bool) -> Result<Self> {
        let mut ids: [Vec<u32>; 4] = Default::default();
        for (name, ids) in
            ["Channel_IDs", "Chip_IDs", "Die_IDs", "Plane_IDs"].into_iter().zip(&mut ids)
        {
            let text = settings.text(name).unwrap_or_else(|| "0".into());
            let numbers = text.split(',').map(|number| number.trim().parse());
            *ids = numbers
                .collect::<Result<_, _>>()
                .map_err(|_| settings.refuse(name, "a list of whole numbers is expected"))?;
            ids.sort_unstable();
            ids.dedup();
        }
        if ids.iter().fold(1, |product: usize, ids| product.saturating_mul(ids.len())) > PLANES_MAX
        {
            return Err(settings.refuse("Channel_IDs", "the flow names more than 1,048,576 planes"));
        }
        let occupancy = settings.count("Initial_Occupancy_Percentage", 0, 0)?.value;
        if occupancy > 100 {
            return Err(settings.refuse("Initial_Occupancy_Percentage", "must be at most 100"));
        }
        Ok(Self { settings, is_trace, occupancy, notes: Vec::new(), ids })
    }

    /// The planes that the flow may use: channel, chip, die, plane.
    pub fn planes(&self) -> impl Iterator<Item = [u32; 4]> + '_ {
        let [channels, chips, dies, planes] = &self.ids;
        channels.iter().flat_map(move |&channel| {
            chips.iter().flat_map(move |&chip| {
                let of_die =
                    move |&die: &u32| planes.iter().map(move |&plane| [channel, chip, die, plane]);
                dies.iter().flat_map(of_die)
            })
        })
    }

    /// States that MQSim keeps flows apart that `other` does not share all dies with.
    pub fn compare(&mut self, other: &[Vec<u32>; 4]) {
        if self.ids != *other {
            let note = "MQSim keeps flows on the channels, chips, dies and planes that they name; \
                        here all flows share all dies.";
            self.notes.push(note.into());
        }
    }

    /// The numbers of the channels, chips, dies and planes that the flow may use.
    pub fn ids(&self) -> &[Vec<u32>; 4] {
        &self.ids
    }

    /// The comment with the command that reports on the trace.
    pub fn report(&mut self, name: &str) -> Result<String> {
        let settings = &mut self.settings;
        let path = settings.text("File_Path").unwrap_or_default().replace('\\', "/");
        if path.is_empty() {
            return Err(settings.refuse("File_Path", "the name of a trace is expected"));
        }
        let share = settings.count("Percentage_To_Be_Executed", 100, 0)?;
        let passes = settings.count("Relay_Count", 1, 1)?;
        let units = [("NANOSECOND", 1), ("PICOSECOND", 2), ("MICROSECOND", 3)];
        let unit = settings.choice("Time_Unit", 1, &units)?;
        if share.value < 100 {
            self.notes.push(format!(
                "MQSim replays {} % of the requests, this command all.",
                share.value
            ));
        }
        if unit.value != 1 {
            self.notes.push("Times of the trace are read as nanoseconds; see Time_Unit.".into());
        }
        let mut options = format!(" --passes {}", passes.value);
        if self.occupancy > 0 {
            options.push_str(&format!(" --state filled:{}", f64::from(self.occupancy) / 100.0));
        }
        let path = without_control(&path);
        let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,".contains(c);
        let quoted = match path.chars().all(is_plain) {
            true => path,
            false => format!("'{}'", path.replace('\'', "'\\''")),
        };
        // A command stays on one line, so that it can be copied.
        let text = format!(
            "\n# {name} replays a trace:\n\
             #   prism report {quoted} --format mqsim --device DRIVE.toml{options}\n"
        );
        Ok(text + &self.noted())
    }

    fn noted(&self) -> String {
        self.notes.iter().map(|note| comment(&format!("Approximation: {note}"), "# ")).collect()
    }

    /// The job, in the part of the addresses `from` to `to`. With `waits` it begins after all
    /// earlier jobs.
    pub fn job(&mut self, name: &str, part: (f64, f64), waits: bool) -> Result<String> {
        let mut options = Vec::new();
        let reads = self.pattern(&mut options)?;
        let bytes = self.sizes(&mut options)?;
        self.region(part, &mut options)?;
        self.pace(reads, &mut options)?;
        self.end(bytes, &mut options)?;
        if let Some(seed) = self.settings.text("Seed") {
            options.push(format!("randseed={seed}"));
        }
        if self.settings.peek("Priority_Class").is_some_and(|class| class == "URGENT") {
            self.settings.text("Priority_Class");
            options.push("prioclass=1".into());
        }
        if waits {
            options.push("stonewall".into());
        }
        let notes = self.noted();
        Ok(format!("\n{notes}[{name}]\n{}\n", options.join("\n")))
    }

    /// Reads, writes and their addresses. Returns the percentage of reads.
    fn pattern(&mut self, options: &mut Vec<String>) -> Result<u32> {
        #[derive(Clone, Copy, PartialEq)]
        enum Pattern {
            Streaming,
            Random,
            HotCold,
        }
        let known = [
            ("STREAMING", Pattern::Streaming),
            ("RANDOM_UNIFORM", Pattern::Random),
            ("UNIFORM_RANDOM", Pattern::Random),
            ("RANDOM_HOTCOLD", Pattern::HotCold),
            ("HOTCOLD_RANDOM", Pattern::HotCold),
        ];
        let pattern = self.settings.choice("Address_Distribution", Pattern::Random, &known)?.value;
        let reads = self.settings.count("Read_Percentage", 100, 0)?.value;
        if reads > 100 {
            return Err(self.settings.refuse("Read_Percentage", "must be from 0 to 100"));
        }
        let kind = match reads {
            0 => "write",
            100 => "read",
            _ => "rw",
        };
        let random = if pattern == Pattern::Streaming { "" } else { "rand" };
        options.push(format!("rw={random}{kind}"));
        if kind == "rw" {
            options.push(format!("rwmixread={reads}"));
        }
        if pattern == Pattern::Streaming {
            let note = "MQSim begins at a random address, this job at the start of its region.";
            self.notes.push(note.into());
            return Ok(reads);
        }
        options.push("norandommap".into());
        if pattern == Pattern::HotCold {
            let hot = self.settings.count("Percentage_of_Hot_Region", 0, 1)?.value;
            if hot > 99 {
                return Err(self.settings.refuse("Percentage_of_Hot_Region", "must be below 100"));
            }
            let cold = 100 - hot;
            options.push(format!("random_distribution=zoned:{cold}/{hot}:{hot}/{cold}"));
        }
        self.alignment(options)?;
        Ok(reads)
    }

    fn alignment(&mut self, options: &mut Vec<String>) -> Result<()> {
        let aligned = self.settings.flag("Generated_Aligned_Addresses", false)?.value;
        let sectors =
            if aligned { self.settings.count("Address_Alignment_Unit", 1, 1)?.value } else { 1 };
        options.push(format!("blockalign={}", u64::from(sectors) * 512));
        Ok(())
    }

    /// The size of a request in bytes.
    fn sizes(&mut self, options: &mut Vec<String>) -> Result<u64> {
        let normal = [("FIXED", false), ("NORMAL", true)];
        let normal = self.settings.choice("Request_Size_Distribution", false, &normal)?.value;
        let bytes = u64::from(self.settings.count("Average_Request_Size", 8, 1)?.value) * 512;
        options.push(format!("bs={bytes}"));
        let spread = self.settings.count("Variance_Request_Size", 0, 0);
        if normal && spread?.value > 0 {
            self.notes
                .push("MQSim's sizes are normally distributed, these are all the mean.".into());
        }
        Ok(bytes)
    }

    fn region(&mut self, part: (f64, f64), options: &mut Vec<String>) -> Result<()> {
        let share = self.settings.count("Working_Set_Percentage", 100, 1)?.value.min(100);
        // MQSim multiplies the first and the last address of the flow by the share.
        let percent = |at: f64| at * f64::from(share);
        let (from, to) = (percent(part.0), percent(part.1));
        let near = |at: f64| (at - at.round()).abs() < 1e-6;
        let whole = |at: f64| if near(at) { at.round() } else { at.floor() } as u32;
        let first = whole(from).min(99);
        let size = whole(to).saturating_sub(first).max(1);
        if first > 0 {
            options.push(format!("offset={first}%"));
        }
        options.push(format!("size={size}%"));
        if !near(from) || !near(to) {
            self.notes.push(format!(
                "MQSim's region is {from:.2} to {to:.2} % of the addresses; fio has whole percents."
            ));
        }
        Ok(())
    }

    fn pace(&mut self, reads: u32, options: &mut Vec<String>) -> Result<()> {
        let known = [("QUEUE_DEPTH", false), ("BANDWIDTH", true)];
        let by_rate = self.settings.choice("Synthetic_Generator_Type", false, &known)?.value;
        if !by_rate {
            let depth = self.settings.count("Average_No_of_Reqs_in_Queue", 16, 1)?.value;
            options.push(format!("iodepth={depth}"));
            return Ok(());
        }
        let name = if self.settings.has("Bandwidth") { "Bandwidth" } else { "Intensity" };
        let rate = self.settings.count(name, 0, 1)?.value;
        if rate == 0 {
            return Err(self.settings.refuse(name, "a flow by BANDWIDTH needs a bandwidth"));
        }
        // fio limits reads and writes one by one, MQSim both together.
        let share = |percent: u32| (u64::from(rate) * u64::from(percent) / 100).max(1);
        options.push(match reads {
            0 | 100 => format!("rate={rate}"),
            _ => format!("rate={},{}", share(reads), share(100 - reads)),
        });
        options.push("rate_process=poisson".into());
        options.push("iodepth=1024".into());
        self.notes.push(
            "MQSim has no limit of requests in flight for this flow; here it is 1024.".into(),
        );
        Ok(())
    }

    fn end(&mut self, bytes: u64, options: &mut Vec<String>) -> Result<()> {
        let stop = self.settings.long("Stop_Time", 0)?.value;
        if stop > 0 {
            // fio has no nanoseconds.
            options
                .push(format!("runtime={}", bare_time(stop.div_ceil(1000).saturating_mul(1000))));
            options.push("time_based".into());
            return Ok(());
        }
        let requests = self.settings.count("Total_Requests_To_Generate", 0, 0)?.value;
        if requests == 0 {
            let why = "a flow ends at a Stop_Time above 0 or after a number of requests";
            return Err(self.settings.refuse("Total_Requests_To_Generate", why));
        }
        options.push(format!("number_ios={requests}"));
        options.push(format!("io_size={}", u64::from(requests).saturating_mul(bytes)));
        Ok(())
    }
}
