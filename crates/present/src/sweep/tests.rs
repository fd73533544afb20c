//! Studies and designs without a file system: what a worker in another process gets is enough.

use std::collections::BTreeMap;
use std::path::Path;

use crate::analysis::Trace;
use crate::env::{Env, Outside, Step};
use crate::error::PresentError;
use crate::sweep::{
    Design, Designs, Part, Study, Summary, SweepEnv, TraceSelection, assemble, execute, parse_row,
};

/// Texts of files by path. Traces do not exist: reading one is a bug, or fails.
struct TextEnv {
    texts: BTreeMap<&'static str, String>,
    trace_fails: bool,
}

impl TextEnv {
    fn new() -> Self {
        let jobs = "[w]\nrw=randwrite\nio_size=1m\n";
        let device = prism_ssd::DriveSpec::preset_text("dc-tlc").expect("a preset");
        let texts = [("at/j.fio", jobs.to_owned()), ("at/d.toml", device.to_owned())];
        Self { texts: texts.into(), trace_fails: false }
    }

    /// An environment without files.
    fn empty() -> Self {
        Self { texts: BTreeMap::new(), trace_fails: false }
    }
}

impl Env for TextEnv {
    fn show(&self, _: Step<'_>) {}

    fn seconds(&self) -> f64 {
        0.0
    }

    fn cores(&self) -> usize {
        1
    }

    fn run_on<T: Send>(
        &self,
        _: usize,
        jobs: Vec<impl FnOnce() -> T + Send>,
        finished: impl Fn(usize) + Sync,
    ) -> Vec<T> {
        let run = |(done, job): (usize, _)| {
            let job: Box<dyn FnOnce() -> T> = Box::new(job);
            let result = job();
            finished(done + 1);
            result
        };
        jobs.into_iter().enumerate().map(run).collect()
    }

    fn device_text(&self, path: &Path) -> Result<String, Outside> {
        let text = self.texts.get(path.to_str().expect("UTF-8")).cloned();
        text.ok_or_else(|| format!("{}: no such file", path.display()).into())
    }

    fn read_state(&self, _: &Path) -> Result<Vec<u8>, Outside> {
        Err("there are no snapshots".into())
    }

    fn write_state(&self, _: &Path, _: &[u8]) -> Result<(), Outside> {
        Err("nothing is written".into())
    }
}

impl SweepEnv for TextEnv {
    fn trace(&self, _: &TraceSelection) -> Result<Trace, Outside> {
        if self.trace_fails {
            return Err("the disk is gone".into());
        }
        panic!("traces are\nnot made")
    }

    fn digest(&self, path: &Path) -> Result<String, Outside> {
        let content = self.texts.get(path.to_str().expect("UTF-8"));
        Ok(format!("digest of {} {content:?}", path.display()))
    }
}

const STUDY: &str = "[base]\ncapacity = \"64MiB\"\njobs = \"j.fio\"\ndevice = \"d.toml\"\n\
                     ftl.free_blocks_low = 3\n[grid]\niodepth = [1, 4]\nop = [0.07, 0.2]\n";

fn designs(text: &str) -> Designs {
    let study = Study::parse("s.toml", Path::new("at"), text).unwrap();
    study.designs(BTreeMap::new(), &TextEnv::new()).unwrap()
}

#[test]
fn a_design_is_all_that_another_process_needs() {
    let planned = designs(STUDY);
    let env = TextEnv::empty();
    let run = |design: &Design| {
        let sent = serde_json::to_string(design).unwrap();
        let received: Design = serde_json::from_str(&sent).unwrap();
        assert_eq!(&received, design);
        let row = received.run(&env).unwrap();
        assert_eq!(row.error, None);
        parse_row(&serde_json::to_string(&row).unwrap()).unwrap()
    };
    // Workers finish in any order.
    let rows: Vec<_> = planned.designs.iter().rev().map(run).collect();
    let here = &TextEnv::new();
    let local = execute(&planned.designs, Part::WHOLE, vec![], 1, here, |_| Ok(())).unwrap();
    let data = assemble(&planned, &rows).unwrap();
    assert_eq!(data, assemble(&planned, &local).unwrap());
    assert_eq!(data.rows(), 4);
    let ratios = &data.column("write_amplification").unwrap().values;
    assert!((0..4).all(|row| ratios.number(row).is_some()));
    let summary = serde_json::to_value(Summary::of(&planned, &data, 0)).unwrap();
    assert_eq!(summary["results"][0]["result"], "write_amplification");
    let missing = assemble(&planned, &rows[1..]).unwrap_err().to_string();
    assert_eq!(missing, "design 3 of the sweep has no row");
    let mut other = rows.clone();
    other[3].hash = "0".into();
    assert!(assemble(&planned, &other).is_err(), "a row of other inputs");
    assert!(parse_row("{}").is_err());
}

#[test]
fn a_design_has_the_texts_of_its_own_drive_alone() {
    let text = prism_ssd::DriveSpec::preset_text("dc-tlc").expect("a preset");
    // No path has such a name, and it is not looked up among files.
    let name = |number: usize| format!("<../a/b {number}>.toml");
    let lengths = [1, 100].map(|drives| {
        let devices: BTreeMap<String, String> =
            (0..drives).map(|number| (name(number), format!("# {number}\n{text}"))).collect();
        let list: Vec<_> = devices.keys().map(|name| format!("{name:?}")).collect();
        let base = "[base]\ncapacity = \"64MiB\"\njobs = \"j.fio\"\n";
        let study = format!("{base}[grid]\ndevice = [{}]\n", list.join(", "));
        let study = Study::parse("s.toml", Path::new("at"), &study).unwrap();
        let planned = study.designs(devices, &TextEnv::new()).unwrap().designs;
        assert_eq!(planned.len(), drives);
        let hashes: std::collections::BTreeSet<_> = planned.iter().map(|one| &one.hash).collect();
        assert_eq!(hashes.len(), drives);
        assert_eq!(planned[drives - 1].run(&TextEnv::empty()).unwrap().error, None);
        serde_json::to_string(&planned[0]).unwrap().len()
    });
    assert_eq!(lengths[0], lengths[1]);
}

#[test]
fn kept_rows_are_not_run_again() {
    let planned = designs(STUDY);
    let env = TextEnv::new();
    let kept = vec![planned.designs[0].run(&env).unwrap(), planned.designs[2].run(&env).unwrap()];
    let ran = std::sync::Mutex::new(Vec::new());
    let keep = |row: &crate::sweep::Row| {
        ran.lock().unwrap().push(row.number);
        Ok(())
    };
    let rows = execute(&planned.designs, Part::WHOLE, kept, 1, &env, keep).unwrap();
    assert_eq!(*ran.lock().unwrap(), [1, 3]);
    assert!(assemble(&planned, &rows).is_ok());
    ran.lock().unwrap().clear();
    let full = |row: &crate::sweep::Row| {
        ran.lock().unwrap().push(row.number);
        Err("the disk is full".into())
    };
    let error = execute(&planned.designs, Part::WHOLE, vec![], 1, &env, full).unwrap_err();
    assert_eq!(error.to_string(), "the disk is full");
    assert_eq!(*ran.lock().unwrap(), [0], "nothing is run in vain");
}

#[test]
fn every_input_is_in_the_hash() {
    let hashes = |text: &str, env: &TextEnv| {
        let study = Study::parse("s.toml", Path::new("at"), text).unwrap();
        let planned = study.designs(BTreeMap::new(), env).unwrap();
        (planned.designs[0].hash.clone(), planned.hash)
    };
    let before = hashes(STUDY, &TextEnv::new());
    assert_eq!(before, hashes(&format!("# comment\n{STUDY}"), &TextEnv::new()));
    for (from, to) in [("64MiB", "65MiB"), ("iodepth = [1", "iodepth = [2"), ("0.07", "0.08")] {
        let after = hashes(&STUDY.replace(from, to), &TextEnv::new());
        assert!(after.0 != before.0 && after.1 != before.1, "{from}");
    }
    for (file, from) in [("at/j.fio", "1m"), ("at/d.toml", "60us")] {
        let mut env = TextEnv::new();
        let text = env.texts[file].replace(from, &from.replace(['1', '6'], "2"));
        env.texts.insert(file, text);
        assert_ne!(hashes(STUDY, &env), before, "{file}");
    }
    let more = hashes(&STUDY.replace("[1, 4]", "[1, 4, 8]"), &TextEnv::new());
    assert!(more.0 == before.0 && more.1 != before.1);
}

#[test]
fn snapshots_are_in_the_hash_and_must_stay_as_they_were() {
    let text = STUDY.replace("[grid]", "state = \"old.prism-state\"\n[grid]");
    let study = Study::parse("s.toml", Path::new("at"), &text).unwrap();
    let plan = |env: &TextEnv| study.designs(BTreeMap::new(), env).unwrap().designs[0].clone();
    let mut env = TextEnv::new();
    let before = plan(&env);
    let error = before.run(&env).unwrap_err().to_string();
    assert_eq!(error, "there are no snapshots");
    env.texts.insert("at/old.prism-state", "other content".into());
    assert_ne!(before.hash, plan(&env).hash);
    let error = before.run(&env).unwrap_err().to_string();
    assert_eq!(
        error,
        "old.prism-state: the file has changed since the sweep was planned; begin it again"
    );
}

#[test]
fn a_panic_is_a_row_and_a_failure_of_the_system_is_not() {
    let text = "[base]\ntrace = \"t.csv\"\n[grid]\nseed = [1]\n";
    let study = Study::parse("s.toml", Path::new(""), text).unwrap();
    let failing = TextEnv { trace_fails: true, ..TextEnv::new() };
    let error = study.designs(BTreeMap::new(), &failing).unwrap_err();
    assert!(matches!(error, PresentError::Outside(_)), "traces are read when a sweep is planned");
    let mut planned = designs(STUDY);
    for setting in &mut planned.designs[0].settings {
        if setting.name == "jobs" {
            (setting.name, setting.value) =
                ("trace".into(), crate::sweep::Scalar::Text("t".into()));
        }
    }
    let mut design = planned.designs[0].clone();
    design.settings.retain(|setting| setting.name != "iodepth");
    let files = std::sync::Arc::make_mut(&mut design.files);
    files.digests.insert("t".into(), "0".into());
    let row = design.run(&TextEnv::new()).unwrap();
    assert_eq!(row.error.as_deref(), Some("a bug of Prism, please report it: traces are"));
    assert!(row.results.is_empty());
    assert!(design.run(&failing).is_err());
}
