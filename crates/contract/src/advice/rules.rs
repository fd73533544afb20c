//! Each design rule by itself.

use prism_base::Bytes;

use super::{BELOW_UNIT, FEW, FULL, IN_PLACE, Inputs, SLOW, Verdict};
use crate::rules::Verdict as RuleVerdict;

/// What was found of a rule.
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

const NOTHING_WRITTEN: &str = "Nothing is written.";

pub fn in_place(inputs: &Inputs) -> Assessment {
    let advice = "Write updates elsewhere, one behind the other, and discard what they replace \
                  as a whole: on flash a place of its own gains nothing.";
    if inputs.written.0 == 0 {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    }
    let overwriting = share(inputs.overwritten.0, inputs.written.0);
    let numbers = format!(
        "{} of {} written replace data where it is; {} of flash are programmed to complete units \
         written in part. In place is from {} on.",
        percent(overwriting),
        inputs.written,
        inputs.completed,
        percent(IN_PLACE),
    );
    assessed(overwriting >= IN_PLACE, numbers, advice)
}

pub fn hot_cold(inputs: &Inputs) -> Assessment {
    let mut advice = "Keep what is written often apart from what is not: other files, other parts \
                      of a file, or placement handles."
        .to_owned();
    if let Some((before, after)) = inputs.hot_cold {
        advice.push_str(&format!(
            " With placement handles by heat write amplification is {after:.2} instead of \
             {before:.2}."
        ));
    }
    let (Some(top), Some(density)) = (inputs.top_tenth, inputs.density) else {
        let reason = "Too little is written to tell hot from cold: less than a block.";
        return undecided(reason, String::new(), advice);
    };
    let numbers = format!(
        "The tenth of the units that is written most takes {} of the writes; blocks filled in the \
         order of writing and not yet dead are {} full of data. Hot and cold are mixed where \
         both the lifetimes and the grouping of data fall short of their rules of the contract.",
        percent(top),
        percent(density),
    );
    let mixed = inputs.uniform != RuleVerdict::Kept && inputs.grouped != RuleVerdict::Kept;
    assessed(mixed, numbers, advice)
}

pub fn compact(inputs: &Inputs) -> Assessment {
    let advice = format!(
        "Put together what is written together, without scattered updates: each costs {} of \
         flash at least.",
        inputs.unit
    );
    let Some(median) = inputs.write_median else {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    };
    let small = share(inputs.writes_below_unit, inputs.writes);
    let numbers = format!(
        "The median write is {median}, the mapping unit {}, a flash page {}; {} of writes are \
         shorter than a unit, too many from {} on.",
        inputs.unit,
        inputs.page,
        percent(small),
        percent(BELOW_UNIT),
    );
    if small < BELOW_UNIT && median < inputs.page {
        let reason = "Not decidable from a block trace: whether the bytes of a page were all \
                      changed, or one bit of them, is known to the application only.";
        return undecided(reason, numbers, advice);
    }
    assessed(small >= BELOW_UNIT, numbers, advice)
}

pub fn heavy(inputs: &Inputs) -> Assessment {
    let advice = "Spread writes over time, so that cleaning keeps up with them and no write has \
                  to wait for an erase.";
    let Some(longest) = inputs.longest_write else {
        return undecided(NOTHING_WRITTEN, String::new(), advice);
    };
    let sustained = inputs.sustained.map_or("-".to_owned(), rate);
    let numbers = format!(
        "{} are written while the {} dies of this drive sustain {sustained}; {} of what is \
         programmed are copies of cleaning. {} writes take longer than {SLOW}, the longest \
         {longest}; {} requests found the queue full. Heavy is any such write or request.",
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
    // Of all flash: the spare is never full.
    let of_flash = used / (1.0 + inputs.spare);
    let measured = match inputs.still_valid {
        Some(valid) if valid < 1.0 => format!(
            "the blocks that cleaning chose were {} valid: {:.1} for one",
            percent(valid),
            1.0 / (1.0 - valid)
        ),
        Some(_) => "the blocks that cleaning chose were wholly valid".into(),
        None => "no block was chosen for cleaning".into(),
    };
    let numbers = format!(
        "At the end {} of {} hold data, {} (how the drive begins is part of that); full is above \
         {}. Blocks chosen blindly would be {} valid, and {:.1} of them compacted to free one; \
         {measured}.",
        inputs.mapped,
        inputs.capacity,
        percent(used),
        percent(FULL),
        percent(of_flash),
        1.0 / (1.0 - of_flash),
    );
    let advice = "Leave part of the drive unwritten or discarded: what holds no data is spare \
                  flash.";
    assessed(used > FULL, numbers, advice)
}

/// Flash pages that a request of the median size takes.
fn pages(size: Bytes, inputs: &Inputs) -> u64 {
    size.0.div_ceil(inputs.page.0).max(1)
}

fn full_scale(inputs: &Inputs) -> Bytes {
    inputs.page * u64::from(inputs.channels)
}

const NO_REQUESTS: &str = "Nothing is read or written.";
const NO_COMPLETIONS: &str =
    "The trace has no completions, so how many requests were in flight is not known.";

fn scale(size: Bytes, inputs: &Inputs) -> String {
    let depth = inputs.in_flight.map_or("an unknown number".to_owned(), |n| n.to_string());
    format!(
        "The median request is {size} with {depth} in flight; big is from {} on, a flash page of \
         {} on each of {} channels.",
        full_scale(inputs),
        inputs.page,
        inputs.channels,
    )
}

pub fn small(inputs: &Inputs) -> Assessment {
    let mut advice = "Issue small requests from several threads, or asynchronously, so that every \
                      channel has work."
        .to_owned();
    if let Some((before, after)) = inputs.deeper {
        advice.push_str(&format!(
            " With 32 requests in flight the same work runs at {} instead of {}.",
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
    let advice = "Issue big requests from one thread or two: each keeps all channels busy by \
                  itself, and more of them wait for each other.";
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
