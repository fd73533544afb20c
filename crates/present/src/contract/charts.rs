//! The charts of the contract: what the rules' scores are made of.

use prism_base::Bytes;
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{COVERAGES, Findings, Side, Zombies};
use prism_report::{Axis, Chart, Curve, CurveShape, Curves, Mark, Section, Unit};

use super::Contract;

/// Points of a curve with one value for each size of a cache: as many as can be distinguished.
const POINTS_MAX: usize = 512;

/// One section a rule, those without anything to show left out.
#[must_use]
pub fn sections(contract: &Contract, capacity: Bytes) -> Vec<Section> {
    let findings = &contract.findings;
    let all = [
        request_scale(findings),
        locality(findings, capacity),
        grouping(findings, &contract.blocks),
        lifetime(findings, &contract.blocks),
    ];
    all.into_iter().filter(|section| !section.blocks.is_empty()).collect()
}

fn push(section: &mut Section, chart: Curves) {
    if chart.series.iter().any(|series| series.points.len() > 1) {
        section.push(Chart::Curves(chart));
    }
}

fn curve(name: &str, points: Vec<(f64, f64)>, shape: CurveShape) -> Curve {
    Curve { name: name.into(), points, shape }
}

fn request_scale(findings: &Findings) -> Section {
    let rule = &findings.request_scale;
    let mut section = Section::new("Request scale", "");
    let sizes = |side: &Side| {
        let mut seen = 0;
        let share = |(size, count): (u64, u64)| {
            seen += count;
            (size as f64, seen as f64 / side.requests as f64)
        };
        side.sizes.iter().map(share).collect::<Vec<_>>()
    };
    push(
        &mut section,
        Curves {
            title: "Request sizes".into(),
            caption: "Share of the requests that are at most so large. A step far to the left is \
                      a habit of small requests; the mark is what fills all channels."
                .into(),
            x: Axis::log("size of the request", Unit::Bytes),
            y: Axis::linear("share of requests", Unit::Percent),
            series: vec![
                curve("read", thinned(sizes(&rule.reads)), CurveShape::Steps),
                curve("write", thinned(sizes(&rule.writes)), CurveShape::Steps),
            ],
            marks: vec![Mark { x: rule.full_scale().0 as f64, label: "full scale".into() }],
        },
    );
    let depths = |side: &Side| {
        let mut seen = 0;
        let share = |(depth, &count): (usize, &u64)| {
            seen += count;
            (depth as f64, seen as f64 / side.requests as f64)
        };
        let all = side.depth.counts().iter().enumerate().map(share).collect::<Vec<_>>();
        thinned(all)
    };
    if rule.depth_known {
        push(
            &mut section,
            Curves {
                title: "Requests outstanding".into(),
                caption: "Share of the requests that find at most so many others outstanding. \
                          One that is high at 0 waits for each request before it asks for the \
                          next."
                    .into(),
                x: Axis::linear("requests outstanding before it", Unit::Count),
                y: Axis::linear("share of requests", Unit::Percent),
                series: vec![
                    curve("read", depths(&rule.reads), CurveShape::Steps),
                    curve("write", depths(&rule.writes), CurveShape::Steps),
                ],
                marks: Vec::new(),
            },
        );
    }
    section
}

/// At most [`POINTS_MAX`] of `points`, the last one among them.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last);
    kept.map(|(_, point)| point).collect()
}

fn locality(findings: &Findings, capacity: Bytes) -> Section {
    let rule = &findings.locality;
    let mut section = Section::new("Locality", "");
    let visits = rule.distances.visits() as f64;
    let reach = rule.reach.0 as f64;
    let all = rule.distances.curve().into_iter().enumerate();
    let points = all.map(|(pages, misses)| (pages as f64 * reach, misses as f64 / visits));
    let mark = |coverage: f64| Mark {
        x: (coverage * findings.subject.map_pages as f64).round().max(1.0) * reach,
        label: format!("{} %", coverage * 100.0),
    };
    push(
        &mut section,
        Curves {
            title: "Misses of a cache of the map".into(),
            caption: format!(
                "How many visits to translation pages a cache does not find, by the addresses \
                 that it covers. Where the line falls steeply lies the working set. Marks are \
                 shares of the map of this drive ({capacity})."
            ),
            x: Axis::linear("addresses that the cache covers", Unit::Bytes),
            y: Axis::linear("miss ratio", Unit::Percent),
            series: vec![curve("miss ratio", thinned(points.collect()), CurveShape::Steps)],
            marks: COVERAGES.into_iter().take(4).map(mark).collect(),
        },
    );
    section
}

/// The zombie curve of `blocks` as steps.
fn zombies(blocks: &Zombies) -> Vec<(f64, f64)> {
    let classes = blocks.curve();
    // A class of blocks lies to the left of its end, and a step holds to the right.
    let starts = [0].into_iter().chain(classes.iter().map(|&(bytes, _)| bytes));
    let ratios = classes.iter().map(|&(_, ratio)| ratio).chain([0.0]);
    thinned(starts.zip(ratios).map(|(bytes, ratio)| (bytes as f64, ratio)).collect())
}

/// What the drive's cleaning has left: data, and the map where it lies on flash.
fn blocks_of_the_drive(blocks: &DriveBlocks) -> Option<Curves> {
    let (data, map) = (blocks.data.as_ref()?, blocks.map.as_ref()?);
    Some(Curves {
        title: "Blocks of this drive".into(),
        caption: format!(
            "The same of the simulated drive at the end, whose cleaning has taken the emptiest \
             blocks: the steady slope that is left is its spare flash. {} blocks are open and \
             not in it.",
            data.open_blocks() + map.open_blocks()
        ),
        x: Axis::linear("blocks that hold something", Unit::Bytes),
        y: Axis::linear("valid share of the block", Unit::Percent),
        series: vec![
            curve("data", zombies(data), CurveShape::Steps),
            curve("map on flash", zombies(map), CurveShape::Steps),
        ]
        .into_iter()
        .filter(|series| series.points.len() > 1)
        .collect(),
        marks: Vec::new(),
    })
}

fn grouping(findings: &Findings, blocks: &DriveBlocks) -> Section {
    let rule = &findings.grouping;
    let mut section = Section::new("Grouping by death time", "");
    push(
        &mut section,
        Curves {
            title: "Zombie curves".into(),
            caption: "Blocks from the fullest on, by the share of them that is valid, on a drive \
                      that never cleans. A curve that drops from 1 to 0 like a cliff needs no \
                      cleaning; a long tail is data that keeps garbage alive."
                .into(),
            x: Axis::linear("blocks that hold data", Unit::Bytes),
            y: Axis::linear("valid share of the block", Unit::Percent),
            series: vec![
                curve("one stream", zombies(&rule.unsegmented), CurveShape::Steps),
                curve("segments of 128 MiB", zombies(&rule.segmented), CurveShape::Steps),
            ],
            marks: vec![Mark { x: rule.mapped.0 as f64, label: "mapped".into() }],
        },
    );
    if let Some(chart) = blocks_of_the_drive(blocks) {
        push(&mut section, chart);
    }
    let course = |pick: fn(&prism_contract::rules::SpaceSample) -> u64| {
        rule.history.iter().map(|at| (at.written as f64, pick(at) as f64)).collect::<Vec<_>>()
    };
    push(
        &mut section,
        Curves {
            title: "Space held by data".into(),
            caption: "Data that is mapped, and the blocks that hold it, as writing goes on. The \
                      gap between the two is garbage that cannot be erased without copying."
                .into(),
            x: Axis::linear("written so far", Unit::Bytes),
            y: Axis::linear("bytes", Unit::Bytes),
            series: vec![
                curve("held by blocks", course(|at| at.held), CurveShape::Line),
                curve("mapped", course(|at| at.mapped), CurveShape::Line),
            ],
            marks: Vec::new(),
        },
    );
    section
}

fn lifetime(findings: &Findings, blocks: &DriveBlocks) -> Section {
    let mut section = Section::new("Uniform data lifetime", "");
    let points = findings.lifetime.curve();
    push(
        &mut section,
        Curves {
            title: "Writes by rank".into(),
            caption: "How often each unit is written, from the most written on. A flat line is \
                      uniform; a peak on the left is a journal or a table that wears out flash \
                      for all."
                .into(),
            x: Axis::linear("units, most written first", Unit::Percent),
            y: Axis::log("writes", Unit::Count),
            series: vec![curve(
                "writes of a unit",
                thinned(points.into_iter().map(|(x, y)| (x, f64::from(y))).collect()),
                CurveShape::Steps,
            )],
            marks: Vec::new(),
        },
    );
    let wear = blocks.wear_curve();
    push(
        &mut section,
        Curves {
            title: "Wear".into(),
            caption: "Erases of each block of the simulated drive since it was made, from the \
                      least erased on. A flat line is even wear; a foot on the left is blocks \
                      whose data never changes."
                .into(),
            x: Axis::linear("blocks, least erased first", Unit::Percent),
            y: Axis::linear("erases", Unit::Count),
            series: vec![curve(
                "erases of a block",
                wear.into_iter().map(|(x, y)| (x, f64::from(y))).collect(),
                CurveShape::Steps,
            )],
            marks: Vec::new(),
        },
    );
    section
}
