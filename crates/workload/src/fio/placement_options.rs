//! The options of flexible data placement, read and checked against the drive.

use super::error::FioError;
use super::job::Handles;
use super::resolve::JobSettings;

/// Options without effect unless `fdp` or `dataplacement` is given.
const PLACEMENT_OPTIONS: [&str; 2] = ["plids", "plid_select"];

impl JobSettings<'_> {
    /// The placement handles that the job writes with; the drive has `count`.
    pub(super) fn handles(&self, count: u32) -> Result<Option<Handles>, FioError> {
        let s = self.settings;
        let list = s.read("plids", parse_list)?;
        let random = s.read("plid_select", |text| match text {
            "roundrobin" => Ok(false),
            "random" => Ok(true),
            "scheme" => Err("scheme is not simulated: give each region a job with plids of its \
                             own"
            .into()),
            _ => Err("roundrobin or random is expected".into()),
        })?;
        if !self.uses_handles()? {
            // Placement may be switched off without removing the other options.
            let switched_off = s.has("fdp") || s.has("dataplacement");
            return match PLACEMENT_OPTIONS.into_iter().find(|option| s.has(option)) {
                Some(option) if !switched_off => {
                    Err(self.wrong(format!("{option} means nothing without fdp=1")))
                }
                _ => Ok(None),
            };
        }
        if count == 0 {
            let what = "fdp=1 needs a drive with placement handles, such as one with \
                        --set ftl.placement_handles=8";
            return Err(self.wrong(what.into()));
        }
        // A request has 16 bits for the handle.
        let all = || (0..=u16::MAX).take(count as usize).collect();
        let list = list.unwrap_or_else(all);
        if let Some(&largest) = list.last().filter(|&&handle| u32::from(handle) >= count) {
            return Err(self.wrong(format!(
                "plids names handle {largest}, but the drive has {count}, from 0 on"
            )));
        }
        Ok(Some(Handles { list, random: random.unwrap_or(false) }))
    }

    fn uses_handles(&self) -> Result<bool, FioError> {
        let directive = self.settings.read("dataplacement", |text| match text {
            "none" => Ok(false),
            "fdp" => Ok(true),
            "streams" => Err("streams is not simulated: drives here have placement handles, \
                              for which fdp is the option"
                .into()),
            _ => Err("none or fdp is expected".into()),
        })?;
        Ok(self.settings.flag("fdp")? || directive.unwrap_or(false))
    }
}

/// Reads handles and ranges of handles, such as `0,2-4`; sorted in ascending order, as in fio.
fn parse_list(text: &str) -> Result<Vec<u16>, String> {
    let wrong = || "handles such as 0,2-4 are expected".to_owned();
    let number = |text: &str| text.trim().parse::<u16>().map_err(|_| wrong());
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let range = number(first)?..=number(last)?;
        if range.is_empty() {
            return Err(wrong());
        }
        list.extend(range);
    }
    list.sort_unstable();
    Ok(list)
}
