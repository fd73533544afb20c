//! The configuration of a range of the policy level, and its encoding.

use std::io::{Read, Result, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use prism_base::codec::{invalid, load_whole, save};
use prism_ftl::{Benefit, VictimPolicy};

use crate::monitor::Level;

/// How addresses of a range are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mapping {
    /// Page-level mapping, in units: for writes in any order; the largest map.
    Page,
    /// Block-level mapping: cheap for whole blocks written in order, expensive otherwise. A block
    /// that is rewritten in order is replaced without a copy.
    Block,
    /// Block-level mapping with log blocks for each group of blocks.
    Hybrid {
        /// Logical blocks of a group (N).
        group_blocks: u32,
        /// Upper limit of log blocks of a group (K).
        group_log_blocks: u32,
    },
}

/// How the block to be cleaned is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cleaning {
    /// The block with the least valid data.
    Greedy,
    /// The block that was filled first.
    Fifo,
    /// The block with the best ratio of benefit to cost, weighted by age.
    CostBenefit,
    /// The block that has not changed for longest.
    Lru,
}

impl Cleaning {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Greedy, Self::Fifo, Self::CostBenefit, Self::Lru];

    pub(crate) fn victim(self) -> VictimPolicy {
        match self {
            Self::Greedy => VictimPolicy::Greedy,
            Self::Fifo => VictimPolicy::Fifo,
            Self::CostBenefit => VictimPolicy::CostBenefit(Benefit::Kawaguchi),
            Self::Lru => VictimPolicy::Lru,
        }
    }
}

/// The over-provisioning of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverProvisioning {
    /// In percent of its size, including the open and erased blocks of the mapping; more if the
    /// mapping needs more.
    Percent(u32),
    /// All that is left of the share.
    Rest,
}

/// The configuration of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeConfig {
    /// Its mapping.
    pub mapping: Mapping,
    /// Its cleaning.
    pub cleaning: Cleaning,
    /// Its over-provisioning.
    pub over_provisioning: OverProvisioning,
    /// Placement handles: kinds of data, by lifetime, that are written to different blocks. Only
    /// with [`Mapping::Page`]; 1 for one kind.
    pub handles: u32,
    /// Blocks that may be partly written at once; `None` for half of those that the share has left,
    /// if it is limited.
    pub open_blocks: Option<u32>,
}

impl RangeConfig {
    /// The paper's static 25 %, one kind of data.
    #[must_use]
    pub fn new(mapping: Mapping, cleaning: Cleaning) -> Self {
        let over_provisioning = OverProvisioning::Percent(25);
        Self { mapping, cleaning, over_provisioning, handles: 1, open_blocks: None }
    }
}

/// As seven u32.
impl BorshSerialize for RangeConfig {
    fn serialize<W: Write>(&self, out: &mut W) -> Result<()> {
        let (kind, n, k) = match self.mapping {
            Mapping::Page => (0, 0, 0),
            Mapping::Block => (1, 0, 0),
            Mapping::Hybrid { group_blocks, group_log_blocks } => {
                (2, group_blocks, group_log_blocks)
            }
        };
        let cleaning = Cleaning::ALL.iter().position(|&policy| policy == self.cleaning);
        let percent = match self.over_provisioning {
            OverProvisioning::Percent(percent) => percent,
            OverProvisioning::Rest => u32::MAX,
        };
        let cleaning = cleaning.expect("every policy is in the list") as u32;
        let open = self.open_blocks.unwrap_or(0);
        [kind, n, k, cleaning, percent, self.handles, open].serialize(out)
    }
}

impl BorshDeserialize for RangeConfig {
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self> {
        let [kind, group_blocks, group_log_blocks, cleaning, percent, handles, open] =
            <[u32; 7]>::deserialize_reader(from)?;
        let mapping = match kind {
            0 => Mapping::Page,
            1 => Mapping::Block,
            2 => Mapping::Hybrid { group_blocks, group_log_blocks },
            _ => return Err(invalid("a mapping that is not known")),
        };
        let cleaning = Cleaning::ALL.get(cleaning as usize);
        let cleaning = *cleaning.ok_or_else(|| invalid("a cleaning that is not known"))?;
        let over_provisioning = match percent {
            u32::MAX => OverProvisioning::Rest,
            percent => OverProvisioning::Percent(percent),
        };
        let open_blocks = Some(open).filter(|&open| open > 0);
        Ok(Self { mapping, cleaning, over_provisioning, handles, open_blocks })
    }
}

/// How long data is expected to live; each has a placement handle of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lifetime {
    /// Unknown.
    Unknown,
    /// Overwritten or deleted soon.
    Short,
    /// Between short and long.
    Medium,
    /// Not changed for long.
    Long,
    /// Never changed.
    Extreme,
}

impl Lifetime {
    /// Every lifetime, in the order of its handle.
    pub const ALL: [Self; 5] =
        [Self::Unknown, Self::Short, Self::Medium, Self::Long, Self::Extreme];

    /// Its placement handle.
    #[must_use]
    pub fn handle(self) -> u32 {
        self as u32
    }
}

/// As a u32.
impl BorshSerialize for Lifetime {
    fn serialize<W: Write>(&self, out: &mut W) -> Result<()> {
        self.handle().serialize(out)
    }
}

impl BorshDeserialize for Lifetime {
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self> {
        let lifetime = Self::ALL.get(u32::deserialize_reader(from)? as usize);
        lifetime.copied().ok_or_else(|| invalid("a lifetime that is not known"))
    }
}

/// A named part of a range.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ContainerInfo {
    /// Its name.
    pub name: String,
    /// Its first address.
    pub begin: u64,
    /// The address after its last.
    pub end: u64,
    /// How long its data lives.
    pub lifetime: Lifetime,
}

/// A range, as stored.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct RangeRecord {
    pub(crate) id: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) config: RangeConfig,
    pub(crate) die_groups: u32,
    /// Blocks of the share, die group after die group.
    #[borsh(serialize_with = "write_runs", deserialize_with = "read_runs")]
    pub(crate) blocks: Vec<u32>,
    pub(crate) containers: Vec<ContainerInfo>,
}

/// The metadata of the policy level.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub(crate) struct Tables {
    pub(crate) next_id: u32,
    pub(crate) journal: Vec<u32>,
    /// Blocks of the journal of the level above.
    pub(crate) above: Vec<u32>,
    pub(crate) ranges: Vec<RangeRecord>,
}

impl Tables {
    /// The number of the level that keeps them, and the tables.
    pub(crate) fn encode(&self, level: Level) -> Vec<u8> {
        let mut out = vec![level as u8];
        save(self, &mut out);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self> {
        load_whole(bytes.get(1..).unwrap_or_default())
    }
}

fn write_runs<W: Write>(blocks: &[u32], out: &mut W) -> Result<()> {
    runs(blocks).serialize(out)
}

fn read_runs<R: Read>(from: &mut R) -> Result<Vec<u32>> {
    Ok(unroll(&Vec::deserialize_reader(from)?))
}

/// Run-length encodes numbers, as pairs of the first number of a run and its length.
fn runs(numbers: &[u32]) -> Vec<u32> {
    let mut pairs: Vec<u32> = Vec::new();
    for &number in numbers {
        match pairs[..] {
            [.., first, ref count] if first + count == number => {
                *pairs.last_mut().expect("there is one") += 1;
            }
            _ => pairs.extend([number, 1]),
        }
    }
    pairs
}

fn unroll(pairs: &[u32]) -> Vec<u32> {
    let run = |pair: &[u32]| pair[0]..pair[0].saturating_add(pair[1]);
    pairs.chunks_exact(2).flat_map(run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_come_back() {
        let mapping = Mapping::Hybrid { group_blocks: 4, group_log_blocks: 2 };
        let tables = Tables {
            journal: vec![0, 16, 32, 48],
            above: vec![1],
            next_id: 3,
            ranges: vec![RangeRecord {
                id: 2,
                begin: 4096,
                end: 1 << 40,
                config: RangeConfig {
                    over_provisioning: OverProvisioning::Rest,
                    open_blocks: Some(7),
                    ..RangeConfig::new(mapping, Cleaning::Lru)
                },
                die_groups: 2,
                blocks: vec![1, 2, 3, 9, 8, 17],
                containers: vec![ContainerInfo {
                    name: "wal".into(),
                    begin: 4096,
                    end: 8192,
                    lifetime: Lifetime::Short,
                }],
            }],
        };
        let bytes = tables.encode(Level::Policy);
        assert_eq!(Tables::decode(&bytes).unwrap(), tables);
        for len in 0..bytes.len() {
            assert!(Tables::decode(&bytes[..len]).is_err(), "cut to {len}");
        }
        assert_eq!(runs(&tables.ranges[0].blocks), [1, 3, 9, 1, 8, 1, 17, 1]);
    }
}
