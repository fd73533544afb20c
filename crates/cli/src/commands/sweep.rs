//! `prism sweep`: runs every design of a study and writes one data set.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args as ClapArgs;
use prism_host::parquet::write_data_set;
use prism_host::{OutputFile, RowStore, RowStoreSpec};
use prism_present::Env;
use prism_present::sweep::{Designs, Part, Row, Study, Summary, assemble, execute, parse_row};
use prism_report::Document;
use serde_json::json;

use crate::failure::Failure;
use crate::output::JsonArg;
use crate::process_env::ProcessEnv;

/// Arguments of `prism sweep`.
#[derive(Clone, Debug, ClapArgs)]
#[command(after_help = "Examples:
  prism sweep samples/sweeps/over-provisioning.toml -o op.parquet
  prism sweep study.toml -o study.csv --jobs 4
  prism sweep study.toml -o study.parquet --part 3/16    # one of 16 parts, on any machine
  prism sweep study.toml -o study.parquet                # what is missing, then the data set")]
pub struct Args {
    /// The file of the sweep: base, grid, random designs, repeats (docs/sweep.md)
    #[arg(value_name = "FILE.toml")]
    file: PathBuf,
    /// The data set: one row for each design, as Parquet or CSV [default: the name of the file of
    /// the sweep, with .parquet]
    #[arg(short, long, value_name = "FILE.parquet|FILE.csv", value_parser = parse_output)]
    output: Option<PathBuf>,
    /// Simulations that run in parallel [default: number of cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only the Kth of N equal parts of the designs, and keep the rows; a run without --part
    /// makes the data set of them
    #[arg(long, value_name = "K/N", value_parser = Part::parse)]
    part: Option<Part>,
    /// Discard the rows that an interrupted run has kept, instead of going on from them
    #[arg(long)]
    restart: bool,
    #[command(flatten)]
    json: JsonArg,
}

/// The output file of a data set.
fn parse_output(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let known = path.extension().is_some_and(|end| end == "parquet" || end == "csv");
    if known { Ok(path) } else { Err("the name must end in .parquet or .csv".into()) }
}

/// Plans the sweep, runs the designs that have no row yet, and writes the data set.
///
/// # Errors
/// [`Failure`] if the file of the sweep or a file that it names is invalid, kept rows are of other
/// inputs, or an output cannot be written.
pub fn run(args: &Args) -> Result<(), Failure> {
    let output = match &args.output {
        Some(path) => path.clone(),
        None => args.file.with_extension("parquet"),
    };
    let text = prism_host::input::read_text(&args.file)?;
    let name = args.file.display().to_string();
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let study = Study::parse(&name, folder, &text)?;
    let env = ProcessEnv::new();
    let designs = study.designs(BTreeMap::new(), &env)?;
    let part = args.part.unwrap_or(Part::WHOLE);
    // A wrong name is reported before the work begins.
    let out = match args.part {
        None => Some(OutputFile::create(&output)?),
        Some(_) => None,
    };
    let numbers = (part.number, part.of);
    if args.restart {
        RowStore::discard(&output, numbers)?;
    }
    let spec = RowStoreSpec { output: &output, part: numbers, inputs: &designs.hash };
    let (store, kept) = RowStore::open(spec)?;
    let kept = kept.iter().map(|row| parse_row(row)).collect::<Result<Vec<_>, _>>()?;
    let new = AtomicUsize::new(0);
    let keep = |row: &Row| {
        new.fetch_add(1, Ordering::Relaxed);
        let line = serde_json::to_string(row).expect("a row has only plain fields");
        store.append(&line).map_err(Into::into)
    };
    let threads = args.jobs.map_or(env.cores(), usize::from);
    let rows = execute(&designs.designs, part, kept, threads, &env, keep)?;
    let kept = rows.len() - new.into_inner();
    let Some(out) = out else { return part_done(args, part, &designs, &rows, kept) };
    let data = assemble(&designs, &rows)?;
    write_data_set(out, &output, &data)?;
    store.remove()?;
    let summary = Summary::of(&designs, &data, kept);
    args.json.show(&summary, &summary.document(&output.display().to_string()))
}

/// Reports on a part, whose rows are kept until a run without `--part` makes the data set.
fn part_done(
    args: &Args,
    part: Part,
    designs: &Designs,
    rows: &[Row],
    kept: usize,
) -> Result<(), Failure> {
    let failed = rows.iter().filter(|row| row.error.is_some()).count();
    let object = json!({
        "part": part.number,
        "parts": part.of,
        "designs": rows.len(),
        "kept": kept,
        "failed": failed,
        "hash": designs.hash,
    });
    let lead = format!(
        "{} of {} designs, {failed} of them failed. When all parts have run, run the same command \
         without --part to make the data set.",
        rows.len(),
        designs.designs.len()
    );
    let title = format!("Part {} of {} of a sweep", part.number, part.of);
    args.json.show(&object, &Document::new(title, lead))
}
