//! The check of each design rule.

use prism_base::Bytes;

use super::{BELOW_UNIT, FEW, FULL, IN_PLACE, Inputs, SLOW, Verdict};
use crate::rules::Verdict as RuleVerdict;

/// The result of checking a rule. The fields are those of [`super::Advice`].
pub struct Assessment {
    pub verdict: Verdict,
    pub numbers: String,
    pub advice: String,
}

fn assessed(violated: bool, numbers: String, advice: impl Into<String>) -> Assessment {
    let verdict = if violated { Verdict::Violates } else { Verdict::Follows };
    Assessment { verdict, numbers, advice: advice.into() }
}

fn undecided(reason: &str, numbers: String, advice: impl Into<String>) -> Assessment {
    Assessment { verdict: Verdict::NotDecidable(reason.into()), numbers, advice: advice.into() }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn rate(bytes_per_second: f64) -> String {
    format!("{}/s", Bytes(bytes_per_second as u64))
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// A smaller factor between two write amplifications is not worth a change.
const MATTERS: f64 = 1.05;

const NOTHING_WRITTEN: &str = "Nothing is written.";

pub fn in_place(inputs: &Inputs) -> Assessment {
    let advice = "Write updates sequentially to new addresses, and discard the old data in large \
                  ranges: on flash, updating in place has no benefit.";
    if inputs.written.0 == 0 {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    }
    let overwriting = share(inputs.overwritten.0, inputs.written.0);
    let numbers = format!(
        "{} of {} written overwrite data in place; {} flash pages are read to complete partially \
         written units. The rule is violated from {} on.",
        percent(overwriting),
        inputs.written,
        inputs.pages_completing,
        percent(IN_PLACE),
    );
    assessed(overwriting >= IN_PLACE, numbers, advice)
}

pub fn hot_cold(inputs: &Inputs) -> Assessment {
    let mut advice = "Separate data that is written often from other data: use different files, \
                      different parts of a file, or placement handles."
        .to_owned();
    if let Some((before, after)) = inputs.hot_cold {
        advice.push_str(&match after * MATTERS < before {
            true => format!(
                " With placement handles for hot and cold data, write amplification is {after:.2} \
                 instead of {before:.2}."
            ),
            false => format!(
                " Placement handles for hot and cold data do not help here: write amplification \
                 is {after:.2}, and {before:.2} without them."
            ),
        });
    }
    let (Some(top), Some(density)) = (inputs.top_tenth, inputs.density) else {
        let reason = "The trace writes less than a block, too little to separate hot from cold.";
        return undecided(reason, String::new(), advice);
    };
    let numbers = format!(
        "The most written tenth of the units gets {} of the writes. On a drive that never cleans, \
         valid data fills {} of the blocks that hold any. The rule is violated if the trace keeps \
         neither the rule of uniform data lifetime nor that of grouping by death time.",
        percent(top),
        percent(density),
    );
    let mixed = inputs.uniform != RuleVerdict::Kept && inputs.grouped != RuleVerdict::Kept;
    assessed(mixed, numbers, advice)
}

pub fn compact(inputs: &Inputs) -> Assessment {
    let advice = format!(
        "Store data together that is written together, and avoid scattered updates: each costs \
         at least {} of flash.",
        inputs.unit
    );
    let Some(median) = inputs.write_median else {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    };
    let small = share(inputs.writes_below_unit, inputs.writes);
    let numbers = format!(
        "The median write is {median}, the mapping unit {}, a flash page {}; {} of the writes are \
         shorter than a unit. The rule is violated from {} on.",
        inputs.unit,
        inputs.page,
        percent(small),
        percent(BELOW_UNIT),
    );
    if small < BELOW_UNIT && median < inputs.page {
        let reason = "A block trace does not show how many bytes of a written page the \
                      application changed.";
        return undecided(reason, numbers, advice);
    }
    assessed(small >= BELOW_UNIT, numbers, advice)
}

pub fn heavy(inputs: &Inputs) -> Assessment {
    let advice = "Spread writes over time, so that cleaning keeps up and no write waits for an \
                  erase.";
    let Some(longest) = inputs.longest_write else {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    };
    let sustained = inputs.sustained.map_or("-".to_owned(), rate);
    let numbers = format!(
        "The trace writes {}, and the {} dies of this drive sustain {sustained}; {} of the \
         programmed data are copies by cleaning. {} writes take longer than {SLOW}, the longest \
         {longest}; {} requests were due while the queue was full. The rule is violated by \
         any such write or request.",
        rate(inputs.write_rate),
        inputs.dies,
        percent(inputs.cleaning),
        inputs.slow_writes,
        inputs.held_back,
    );
    assessed(inputs.slow_writes > 0 || inputs.held_back > 0, numbers, advice)
}

pub fn full(inputs: &Inputs) -> Assessment {
    let used = share(inputs.mapped.0, inputs.capacity.0);
    // The share of all flash, including the spare flash.
    let of_flash = used / (1.0 + inputs.spare);
    let measured = match inputs.still_valid {
        Some(valid) if valid < 1.0 => format!(
            "The blocks that cleaning chose were {} valid, so it cleaned {:.1} to free one",
            percent(valid),
            1.0 / (1.0 - valid)
        ),
        Some(_) => "The blocks that cleaning chose were completely valid".into(),
        None => "No block was cleaned".into(),
    };
    let numbers = format!(
        "At the end {} of {} hold data, {} (including data that the drive held at the start); the \
         drive is full above {}. Blocks chosen at random would be {} valid, and cleaning would \
         have to compact {:.1} of them to free one. {measured}.",
        inputs.mapped,
        inputs.capacity,
        percent(used),
        percent(FULL),
        percent(of_flash),
        1.0 / (1.0 - of_flash),
    );
    let advice = "Leave part of the drive unwritten or discarded: flash that holds no data is \
                  spare flash.";
    let own = share(inputs.mapped_by_trace.0, inputs.capacity.0);
    if used > FULL && own <= FULL {
        // What an assumption about the drive decides is no fault of the trace.
        let reason = format!(
            "The trace itself fills {} of the drive, which is full only because it is assumed to \
             be at the start (--state {}).",
            percent(own),
            inputs.state
        );
        return undecided(&reason, numbers, advice);
    }
    assessed(used > FULL, numbers, advice)
}

/// Flash pages that a request of `size` takes.
fn pages(size: Bytes, inputs: &Inputs) -> u64 {
    size.0.div_ceil(inputs.page.0).max(1)
}

/// The size of a request that keeps all channels busy: a flash page on each.
fn full_scale(inputs: &Inputs) -> Bytes {
    inputs.page * u64::from(inputs.channels)
}

const NO_REQUESTS: &str = "Nothing is read or written.";
const NO_COMPLETIONS: &str =
    "The trace has no completion times, so the number of requests in flight is not known.";

fn scale(size: Bytes, inputs: &Inputs) -> String {
    let depth = inputs.in_flight.map_or("an unknown number".to_owned(), |n| n.to_string());
    format!(
        "The median request is {size} with {depth} in flight; requests are big from {} on, a \
         flash page of {} on each of {} channels.",
        full_scale(inputs),
        inputs.page,
        inputs.channels,
    )
}

pub fn small(inputs: &Inputs) -> Assessment {
    let mut advice = "Issue small requests from several threads, or asynchronously, so that every \
                      channel has work."
        .to_owned();
    if let Some((requests, before, after)) = inputs.deeper {
        advice.push_str(&format!(
            " With {requests} requests in flight, the same work runs at {} instead of {}.",
            rate(after),
            rate(before)
        ));
    }
    let Some(size) = inputs.request_median else {
        return undecided(NO_REQUESTS, String::new(), advice);
    };
    let numbers = scale(size, inputs);
    if size >= full_scale(inputs) {
        return assessed(false, numbers, advice);
    }
    match inputs.in_flight {
        None => undecided(NO_COMPLETIONS, numbers, advice),
        Some(depth) => {
            let idle = depth.saturating_mul(pages(size, inputs)) < u64::from(inputs.channels);
            assessed(idle, numbers, advice)
        }
    }
}

pub fn big(inputs: &Inputs) -> Assessment {
    let advice = "Issue big requests from one thread or two: a single request keeps all channels \
                  busy, and further ones wait for each other.";
    let Some(size) = inputs.request_median else {
        return undecided(NO_REQUESTS, String::new(), advice);
    };
    let numbers = scale(size, inputs);
    if size < full_scale(inputs) {
        return assessed(false, numbers, advice);
    }
    match inputs.in_flight {
        None => undecided(NO_COMPLETIONS, numbers, advice),
        Some(depth) => assessed(depth > FEW, numbers, advice),
    }
}
