//! The charts of the contract: the distributions behind the scores.

use prism_base::Bytes;
use prism_contract::blocks::DriveBlocks;
use prism_contract::rules::{COVERAGES, Findings, Side, Zombies};
use prism_report::{Axis, Chart, Curve, CurveShape, Curves, Mark, Section, Unit};

use super::Contract;

/// Most points of a curve: as many as a chart can show.
const POINTS_MAX: usize = 512;

/// One section per rule; rules without a chart are left out.
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
            caption: "Share of the requests of at most this size. A step far to the left means \
                      many small requests; the mark is the size that occupies all channels."
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
                caption: "Share of the requests issued with at most this many others \
                          outstanding. A curve that is high at 0 belongs to an application that \
                          waits for each request before it issues the next."
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
            title: "Misses of the map cache".into(),
            caption: format!(
                "Share of visits to translation pages that miss a map cache, by the addresses that \
                 the cache covers. The curve falls steeply at the size of the working set. Marks \
                 are shares of the map of this drive ({capacity})."
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

/// The blocks of the drive at the end: data, and the map where it is on flash.
fn blocks_of_the_drive(blocks: &DriveBlocks) -> Option<Curves> {
    let (data, map) = (blocks.data.as_ref()?, blocks.map.as_ref()?);
    Some(Curves {
        title: "Blocks of this drive".into(),
        caption: format!(
            "The blocks of the simulated drive at the end, after its cleaning has erased the \
             emptiest ones: the even slope that remains is its spare flash. {} open blocks are \
             left out.",
            data.open_blocks() + map.open_blocks()
        ),
        x: Axis::linear("blocks that hold data or map", Unit::Bytes),
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
            caption: "The valid share of each block, fullest block first, on a drive that never \
                      cleans. A curve that drops from 1 to 0 like a cliff needs no cleaning; a \
                      long tail is valid data that keeps blocks of garbage from being erased."
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
            caption: "Mapped data, and the blocks that hold it, over the bytes written. The gap \
                      between the two is garbage that cannot be erased without copying."
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
            caption: "Writes of each unit, most written unit first. A flat line is uniform \
                      lifetime; a peak on the left is data such as a journal, which is \
                      rewritten often and wears out the flash for all data."
                .into(),
            x: Axis::linear("units, most written first", Unit::Percent),
            y: Axis::log("writes", Unit::Count),
            series: vec![curve(
                "writes per unit",
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
            caption: "Erases of each block of the simulated drive, least erased block first. A \
                      flat line is even wear; a low part on the left is blocks whose data \
                      never changes."
                .into(),
            x: Axis::linear("blocks, least erased first", Unit::Percent),
            y: Axis::linear("erases", Unit::Count),
            series: vec![curve(
                "erases per block",
                wear.into_iter().map(|(x, y)| (x, f64::from(y))).collect(),
                CurveShape::Steps,
            )],
            marks: Vec::new(),
        },
    );
    section
}
