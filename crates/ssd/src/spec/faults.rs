//! `[faults]`: how the flash of a drive ages and fails, and its age at the start.

use prism_base::{Bytes, Nanos};
use prism_nand::faults::PageFactors;
use prism_nand::{FaultModel, Nand};
use serde::Deserialize;

use super::{DriveSpec, DriveSpecError, bad};
use crate::quantity;

/// `[faults]`. A missing field has the value of the kind ([`FaultModel::of_kind`]).
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultSpec {
    /// `slc`, `mlc`, `tlc` or `qlc`.
    pub kind: String,
    /// Cycles that every block starts with.
    #[serde(default)]
    pub wear: u32,
    /// Time since the initial content of the drive was programmed.
    #[serde(default, deserialize_with = "quantity::nanos")]
    pub retention: Nanos,
    /// Share of blocks that are bad from the factory.
    pub factory_bad: Option<f64>,
    /// Probability that the program of a program unit fails at the rated endurance.
    pub program_failure: Option<f64>,
    /// The exponent of the wear in `program_failure`.
    pub program_exponent: Option<f64>,
    /// Probability that the erase of a block of a die fails at the rated endurance.
    pub erase_failure: Option<f64>,
    /// The exponent of the wear in `erase_failure`.
    pub erase_exponent: Option<f64>,
    /// Raw bit error rate (RBER) of new cells.
    pub rber_fresh: Option<f64>,
    /// Added to the RBER at the rated endurance.
    pub rber_wear: Option<f64>,
    /// The exponent of the wear in `rber_wear`.
    pub rber_wear_exponent: Option<f64>,
    /// Added to the RBER after a year of retention at the rated endurance.
    pub rber_year: Option<f64>,
    /// The exponent of the wear in `rber_year`.
    pub rber_year_wear_exponent: Option<f64>,
    /// The exponent of the years in `rber_year`.
    pub rber_year_time_exponent: Option<f64>,
    /// A factor of the RBER for each type of page, lowest first.
    pub page_factors: Option<Vec<f64>>,
    /// Data bytes per codeword.
    #[serde(default, deserialize_with = "quantity::opt_bytes")]
    pub codeword: Option<Bytes>,
    /// Bits that ECC corrects per codeword.
    pub correctable_bits: Option<u32>,
    /// The most read retries.
    pub read_retries: Option<u32>,
    /// The factor by which each retry lowers the RBER.
    pub retry_factor: Option<f64>,
    /// The fault model of the SLC blocks of a drive with `[slc]`. If missing: kind `slc`, with the
    /// same share of the endurance used up as in the other blocks.
    pub slc: Option<Box<Self>>,
}

impl FaultSpec {
    /// The faults of a new drive with cells of this kind.
    #[must_use]
    pub fn of_kind(kind: &str) -> Self {
        Self {
            kind: kind.into(),
            wear: 0,
            retention: Nanos::ZERO,
            factory_bad: None,
            program_failure: None,
            program_exponent: None,
            erase_failure: None,
            erase_exponent: None,
            rber_fresh: None,
            rber_wear: None,
            rber_wear_exponent: None,
            rber_year: None,
            rber_year_wear_exponent: None,
            rber_year_time_exponent: None,
            page_factors: None,
            codeword: None,
            correctable_bits: None,
            read_retries: None,
            retry_factor: None,
            slc: None,
        }
    }

    /// The model for cells rated for `endurance` cycles; `None` if the kind is unknown or the
    /// number of page factors is not allowed.
    #[must_use]
    pub fn model(&self, endurance: u32) -> Option<FaultModel> {
        let mut model = FaultModel::of_kind(&self.kind, endurance)?;
        (model.wear, model.age) = (self.wear, self.retention);
        let bits = &mut model.bits;
        let ecc = &mut model.ecc;
        let fields = [
            (&mut model.factory_bad, self.factory_bad),
            (&mut model.program.at_endurance, self.program_failure),
            (&mut model.program.exponent, self.program_exponent),
            (&mut model.erase.at_endurance, self.erase_failure),
            (&mut model.erase.exponent, self.erase_exponent),
            (&mut bits.fresh, self.rber_fresh),
            (&mut bits.cycled, self.rber_wear),
            (&mut bits.wear_exponent, self.rber_wear_exponent),
            (&mut bits.aged, self.rber_year),
            (&mut bits.aged_exponent, self.rber_year_wear_exponent),
            (&mut bits.years_exponent, self.rber_year_time_exponent),
            (&mut ecc.retry_factor, self.retry_factor),
        ];
        for (field, value) in fields {
            *field = value.unwrap_or(*field);
        }
        ecc.correctable = self.correctable_bits.unwrap_or(ecc.correctable);
        ecc.retries = self.read_retries.unwrap_or(ecc.retries);
        if let Some(codeword) = self.codeword {
            ecc.codeword_bits = (codeword.0 * 8) as u32;
        }
        if let Some(factors) = &self.page_factors {
            bits.types = PageFactors::by_type(factors)?;
        }
        Some(model)
    }

    /// The faults of the SLC blocks, rated for `endurance` cycles, of a drive whose other blocks
    /// are rated for `others`.
    fn of_slc(&self, endurance: u32, others: u32) -> Self {
        let used = u64::from(self.wear) * u64::from(endurance) / u64::from(others.max(1));
        let wear = used.min(WEAR_MAX.into()) as u32;
        self.slc.as_deref().cloned().unwrap_or(Self { wear, ..Self::of_kind("slc") })
    }

    fn check(&self, endurance: u32) -> Result<(), DriveSpecError> {
        let shares = [
            ("faults.factory_bad", self.factory_bad),
            ("faults.program_failure", self.program_failure),
            ("faults.erase_failure", self.erase_failure),
            ("faults.rber_fresh", self.rber_fresh),
            ("faults.rber_wear", self.rber_wear),
            ("faults.rber_year", self.rber_year),
            ("faults.retry_factor", self.retry_factor),
        ];
        check_all(&shares, 1.0, "must be between 0 and 1")?;
        let exponents = [
            ("faults.program_exponent", self.program_exponent),
            ("faults.erase_exponent", self.erase_exponent),
            ("faults.rber_wear_exponent", self.rber_wear_exponent),
            ("faults.rber_year_wear_exponent", self.rber_year_wear_exponent),
            ("faults.rber_year_time_exponent", self.rber_year_time_exponent),
        ];
        check_all(&exponents, 16.0, "must be between 0 and 16")?;
        if !FaultModel::KINDS.contains(&self.kind.as_str()) {
            return bad("faults.kind", &self.kind, "kinds are slc, mlc, tlc and qlc");
        }
        if self.wear > WEAR_MAX {
            return bad("faults.wear", self.wear, "must be at most 1000000000 cycles");
        }
        if self.retention.0 > 100 * 365 * 86_400 * 1_000_000_000 {
            return bad("faults.retention", self.retention, "must be at most 100 years");
        }
        let codeword = self.codeword.map_or(512, |codeword| codeword.0);
        if !(64..=1 << 20).contains(&codeword) {
            return bad("faults.codeword", Bytes(codeword), "must be between 64 B and 1 MiB");
        }
        if self.read_retries.is_some_and(|retries| retries > 100) {
            let retries = self.read_retries.unwrap_or_default();
            return bad("faults.read_retries", retries, "must be at most 100");
        }
        if let Some(factors) = &self.page_factors {
            let allowed = factors.iter().all(|factor| (0.0..=1000.0).contains(factor));
            if !allowed || PageFactors::by_type(factors).is_none() {
                let why = "give one to eight factors between 0 and 1000";
                return bad("faults.page_factors", format!("{factors:?}"), why);
            }
        }
        let ecc = self.model(endurance).expect("kind and factors were checked").ecc;
        if ecc.correctable >= ecc.codeword_bits {
            let why = "must be fewer than the bits of a codeword";
            return bad("faults.correctable_bits", ecc.correctable, why);
        }
        Ok(())
    }
}

/// The most initial wear: far beyond the endurance of any cell.
const WEAR_MAX: u32 = 1_000_000_000;

fn check_all(
    fields: &[(&'static str, Option<f64>)],
    most: f64,
    why: &'static str,
) -> Result<(), DriveSpecError> {
    let given = fields.iter().filter_map(|&(field, value)| Some((field, value?)));
    match given.into_iter().find(|(_, value)| !(0.0..=most).contains(value)) {
        Some((field, value)) => bad(field, value, why),
        None => Ok(()),
    }
}

impl DriveSpec {
    /// Erased blocks that a die group reserves in addition, so that cleaning goes on when blocks
    /// fail one after another: one replaces the failed block, one the block that its data was being
    /// copied to.
    const BLOCKS_RESERVED_FOR_FAULTS: u32 = 2;

    /// How much every watermark is higher because blocks may fail.
    pub(super) fn blocks_reserved_for_faults(&self) -> u32 {
        if self.faults.is_some() { Self::BLOCKS_RESERVED_FOR_FAULTS } else { 0 }
    }

    /// The fault model of the flash, if it has one.
    #[must_use]
    pub fn fault_model(&self) -> Option<FaultModel> {
        self.faults.as_ref().and_then(|faults| faults.model(self.flash.endurance))
    }

    /// The fault model of the SLC blocks, if there are any.
    #[must_use]
    pub fn slc_fault_model(&self) -> Option<FaultModel> {
        let (faults, slc) = (self.faults.as_ref()?, self.slc.as_ref()?);
        faults.of_slc(slc.endurance, self.flash.endurance).model(slc.endurance)
    }

    /// Gives `nand` the fault model of the description.
    pub(crate) fn age(&self, nand: &mut Nand, seed: u64) {
        if let Some(model) = self.fault_model() {
            nand.set_faults_by_kind(model, self.slc_fault_model(), seed);
        }
    }

    /// Checks `[faults.slc]`, which needs `[slc]`.
    fn check_slc_faults(&self, faults: &FaultSpec) -> Result<(), DriveSpecError> {
        let Some(own) = &faults.slc else { return Ok(()) };
        let Some(slc) = &self.slc else {
            let why = "[faults.slc] is for drives with SLC and other blocks ([slc])";
            return bad("faults.slc.kind", &own.kind, why);
        };
        if own.slc.is_some() {
            let why = "[faults.slc] cannot contain another [faults.slc]";
            return bad("faults.slc.slc", "given", why);
        }
        if own.retention != Nanos::ZERO {
            let why = "all data has the same age: give faults.retention alone";
            return bad("faults.slc.retention", own.retention, why);
        }
        own.check(slc.endurance).map_err(|error| match error {
            DriveSpecError::Value { field, value, why } => {
                DriveSpecError::Value { field, value: format!("{value} (in [faults.slc])"), why }
            }
            other => other,
        })
    }

    pub(super) fn check_faults(&self) -> Result<(), DriveSpecError> {
        let Some(faults) = &self.faults else { return Ok(()) };
        faults.check(self.flash.endurance)?;
        self.check_slc_faults(faults)
    }
}
