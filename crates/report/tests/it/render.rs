//! Every block appears in every rendering, and nothing that a document holds can act on
//! the page or the terminal.

use crate::sample;
use prism_report::{
    Axis, BarLayout, Bars, Block, Chart, Column, Curve, CurveShape, Curves, Document, Figure,
    Grade, Heatmap, Layer, Lines, Mark, Scale, Section, Segment, Series, Stacked, Style, Table,
    Unit, Value, Verdict, html, json, terminal,
};

/// What every rendering of the sample must show.
const SHOWN: [&str; 15] = [
    "orders-db.blk.parquet",
    "Write amplification",
    "1.83",
    "4.2 years",
    "Flash programs by cause",
    "strained",
    "Request scale",
    "Zombie curve",
    "size of the drive",
    "Throughput",
    "Addresses over time",
    "> 128 KiB",
    "p99.9",
    "18.4 ms",
    "41 records had no size",
];

fn one_block(block: Block) -> Document {
    let mut section = Section::new("section", "");
    section.push(block);
    Document::new("title", "subtitle").with(section)
}

#[test]
fn every_block_of_the_sample_is_shown() {
    let document = sample::document();
    let page = html::render(&document);
    let text = terminal::render(&document, 100, Style { color: false, unicode: true });
    let plain = terminal::render(&document, 80, Style::PLAIN);
    for shown in SHOWN {
        let escaped = shown.replace('>', "&gt;").replace("4.2 years", "4.2 <small>years");
        assert!(page.contains(&escaped), "{shown:?} on the page");
        assert!(text.contains(shown), "{shown:?} on a Unicode terminal");
        assert!(plain.contains(shown), "{shown:?} on a plain terminal");
    }
    assert_eq!(page.matches("<figure").count(), 9, "as many figures as charts");
    assert_eq!(page.matches("<summary>Numbers").count(), 9, "each has its numbers");
    assert_eq!(page.matches("<section").count(), 5);
}

#[test]
fn the_page_is_one_small_file_that_fetches_nothing() {
    let page = html::render(&sample::document());
    for forbidden in ["http:", "https:", "//cdn", "src=", "@import", "url(", "<link", "fetch("] {
        assert!(!page.contains(forbidden), "{forbidden} on the page");
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.len() < 400_000, "the sample takes {} bytes", page.len());
}

fn noise(i: usize) -> u64 {
    (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40
}

fn noisy_map(columns: usize, rows: usize) -> Block {
    let cells = || (0..columns * rows).map(noise).collect();
    Block::Chart(Chart::Heatmap(Heatmap {
        title: "map".into(),
        caption: String::new(),
        time_range: 0..1 << 40,
        columns,
        column_width: (1 << 40) / columns as u64,
        address_range: 0..1 << 40,
        rows,
        row_height: (1 << 40) / rows as u64,
        unit: Unit::Bytes,
        overlaid: false,
        layers: ["read", "write", "discard"]
            .map(|name| Layer { name: name.into(), cells: cells() })
            .into(),
    }))
}

fn noisy_lines(points: usize, names: &[&str]) -> Block {
    let values = || (0..points).map(|i| Some(noise(i) as f64)).collect();
    Block::Chart(Chart::Lines(Lines {
        title: "lines".into(),
        caption: String::new(),
        time_range: 0..points as u64,
        times: (0..points).map(|i| i as f64).collect(),
        y: Axis::linear("y", Unit::Count),
        series: names.iter().map(|name| Series::new(*name, values())).collect(),
    }))
}

fn noisy_curves(points: usize, shapes: &[CurveShape]) -> Block {
    let points: Vec<(f64, f64)> = (0..points).map(|i| (i as f64, noise(i) as f64)).collect();
    Block::Chart(Chart::Curves(Curves {
        title: "curves".into(),
        caption: String::new(),
        x: Axis::linear("x", Unit::Count),
        y: Axis::log("y", Unit::Ratio),
        series: shapes.iter().map(|&shape| Curve::new("c", shape, points.clone())).collect(),
        marks: Vec::new(),
    }))
}

#[test]
fn the_largest_charts_stay_small() {
    let page = html::render(&one_block(noisy_map(512, 128)));
    assert!(page.len() < 700_000, "a noisy map takes {} bytes", page.len());
    assert!(page.matches("<path").count() < 100, "a panel is a handful of marks");

    let page = html::render(&one_block(noisy_lines(100_000, &["a"])));
    assert!(page.len() < 160_000, "long lines take {} bytes", page.len());

    let shapes = [CurveShape::Line, CurveShape::Steps, CurveShape::Dots];
    let page = html::render(&one_block(noisy_curves(100_000, &shapes)));
    assert!(page.len() < 220_000, "long curves take {} bytes", page.len());
}

#[test]
fn a_big_report_stays_below_two_megabytes() {
    let mut section = Section::new("Everything at its largest", "");
    section.push(noisy_map(256, 48));
    for _ in 0..8 {
        section.push(noisy_lines(512, &["read", "write", "discard"]));
    }
    for _ in 0..10 {
        section.push(noisy_curves(100_000, &[CurveShape::Line, CurveShape::Steps]));
    }
    let document = Document::new("title", "subtitle")
        .with(section)
        .with(sample::document().sections[2].clone());
    let page = html::render(&document);
    assert!(page.len() < 2_000_000, "a big report takes {} bytes", page.len());
}

/// A verdict and curves whose every text is `text`.
fn push_rules(section: &mut Section, text: &str) {
    let verdict = Verdict::new(text, Grade::Broken, text).score(0.5).detail(text, text);
    section.push(Block::Verdicts(vec![verdict]));
    let curve = |shape| Curve::new(text, shape, vec![(1.0, 1.0), (2.0, 2.0)]);
    section.push(Block::Chart(Chart::Curves(Curves {
        title: text.into(),
        caption: text.into(),
        x: Axis::linear(text, Unit::Count),
        y: Axis::linear(text, Unit::Count),
        series: vec![curve(CurveShape::Line), curve(CurveShape::Dots)],
        marks: vec![Mark { x: 1.5, label: text.into() }],
    })));
}

#[test]
fn nothing_from_a_document_is_markup() {
    let evil = "</style></script><script>alert('x')</script>\"' onload=alert(1) x=\x1b[31m\u{202e}";
    let axis = || Axis::linear(evil, Unit::Count);
    let series = || vec![Series::new(evil, vec![Some(1.0)]), Series::new("b", vec![None])];
    let bars = |layout| {
        Block::Chart(Chart::Bars(Bars {
            title: evil.into(),
            caption: evil.into(),
            layout,
            label_name: evil.into(),
            labels: vec![evil.into()],
            y: axis(),
            series: series(),
        }))
    };
    let mut section = Section::new(evil, evil);
    section.push(Block::Text(evil.into()));
    section.push(Block::Notes(vec![evil.into()]));
    section.push(Block::KeyFigures(vec![Figure::new(evil, Unit::Count, evil).note(evil)]));
    let mut table = Table::new(evil, vec![Column::text(evil), Column::number(evil, Unit::Bytes)]);
    table.rows.push(vec![evil.into(), evil.into()]);
    section.push(Block::Table(table));
    push_rules(&mut section, evil);
    section.push(bars(BarLayout::Rows));
    section.push(bars(BarLayout::Columns));
    let segments = vec![Segment { name: evil.into(), value: 1.0 }];
    section.push(Block::Chart(Chart::Stacked(Stacked {
        title: evil.into(),
        caption: evil.into(),
        unit: Unit::Bytes,
        segments,
    })));
    section.push(Block::Chart(Chart::Lines(Lines {
        title: evil.into(),
        caption: evil.into(),
        time_range: 0..10,
        times: vec![5.0],
        y: axis(),
        series: vec![Series::new(evil, vec![]).band(evil, vec![], vec![])],
    })));
    section.push(Block::Chart(Chart::Heatmap(Heatmap {
        title: evil.into(),
        caption: evil.into(),
        time_range: 0..1,
        columns: 1,
        column_width: 1,
        address_range: 0..1,
        rows: 1,
        row_height: 1,
        unit: Unit::Count,
        overlaid: false,
        layers: vec![Layer { name: evil.into(), cells: vec![1] }],
    })));
    let sections = [(); 3].map(|()| section.clone());
    let document =
        Document { title: evil.into(), subtitle: evil.into(), sections: sections.into() };

    let page = html::render(&document);
    assert_eq!(page.matches("<script").count(), 1, "only the page's own script");
    assert_eq!(page.matches("</style").count(), 1);
    assert!(!page.contains("alert('x')") && !page.contains("\"' onload"), "quotes are escaped");
    assert!(!page.contains(['\x1b', '\u{202e}']));
    for style in [Style::PLAIN, Style { color: false, unicode: true }] {
        let text = terminal::render(&document, 80, style);
        assert!(!text.contains(['\x1b', '\u{202e}']), "{style:?}");
    }
}

#[test]
fn a_plain_terminal_gets_ascii_within_its_width() {
    let document = sample::document();
    for width in [60, 80, 120] {
        let text = terminal::render(&document, width, Style::PLAIN);
        assert!(text.is_ascii());
        for line in text.lines() {
            assert!(line.len() <= width, "{} columns at {width}: {line:?}", line.len());
            assert!(!line.ends_with(' '), "{line:?}");
        }
    }
    assert!(terminal::render(&document, 80, Style::RICH).contains("\x1b[1m"));
}

#[test]
fn degenerate_charts_render() {
    let empty = |chart| {
        assert!(json::chart(&chart).is_object());
        let document = one_block(Block::Chart(chart));
        let page = html::render(&document);
        assert!(!page.contains("NaN") && !page.contains("inf\""), "only numbers on the page");
        assert!(!terminal::render(&document, 80, Style::PLAIN).is_empty());
    };
    let (title, caption) = (String::from("t"), String::from("c"));
    empty(Chart::Lines(Lines {
        title: title.clone(),
        caption: caption.clone(),
        time_range: 0..0,
        times: vec![],
        y: Axis::log("y", Unit::Nanos),
        series: vec![],
    }));
    empty(Chart::Lines(Lines {
        title: title.clone(),
        caption: caption.clone(),
        time_range: 7..7,
        times: vec![7.0, 7.0],
        y: Axis::log("y", Unit::Bytes),
        series: vec![Series::new("s", vec![Some(f64::NAN), Some(-1.0)])],
    }));
    for layout in [BarLayout::Columns, BarLayout::Rows] {
        empty(Chart::Bars(Bars {
            title: title.clone(),
            caption: caption.clone(),
            layout,
            label_name: String::new(),
            labels: vec!["a".into()],
            y: Axis::linear("y", Unit::Count),
            series: vec![Series::new("s", vec![Some(f64::INFINITY)])],
        }));
    }
    let points = [vec![], vec![(f64::NAN, 1.0), (-1.0, f64::INFINITY)], vec![(0.0, -1.0)]];
    let shapes = [CurveShape::Line, CurveShape::Steps, CurveShape::Dots];
    for scale in [Scale::Linear, Scale::Log] {
        let axis = |label: &str, unit| Axis { label: label.into(), unit, scale };
        let mark = |x: f64| Mark { x, label: "m".into() };
        empty(Chart::Curves(Curves {
            title: title.clone(),
            caption: caption.clone(),
            x: axis("x", Unit::Bytes),
            y: axis("y", Unit::Count),
            series: points.iter().zip(shapes).map(|(p, s)| Curve::new("s", s, p.clone())).collect(),
            marks: [f64::NAN, 0.0].map(mark).into(),
        }));
    }
    let segments = vec![Segment { name: "none".into(), value: f64::NAN }];
    empty(Chart::Stacked(Stacked {
        title: title.clone(),
        caption: caption.clone(),
        unit: Unit::Count,
        segments,
    }));
    for overlaid in [false, true] {
        empty(Chart::Heatmap(heatmap(0, vec![("empty", vec![])], overlaid)));
    }
    empty(Chart::Heatmap(heatmap(0, vec![], true)));
}

/// A heat map of `columns` columns and two rows.
fn heatmap(columns: usize, layers: Vec<(&str, Vec<u64>)>, overlaid: bool) -> Heatmap {
    let layer = |(name, cells): (&str, Vec<u64>)| Layer { name: name.into(), cells };
    Heatmap {
        title: "t".into(),
        caption: "c".into(),
        time_range: 0..columns as u64,
        columns,
        column_width: 1,
        address_range: 0..2,
        rows: 2,
        row_height: 1,
        unit: Unit::Count,
        layers: layers.into_iter().map(layer).collect(),
        overlaid,
    }
}

/// In an overlaid heat map each cell has the colour of the layer with the largest amount, and is
/// drawn once.
#[test]
fn overlaid_layers_share_a_panel() {
    let layers = || vec![("a", vec![9, 0, 1, 5]), ("b", vec![1, 0, 9, 5])];
    let drawn = |overlaid| {
        let chart = Chart::Heatmap(heatmap(2, layers(), overlaid));
        html::render(&one_block(Block::Chart(chart)))
    };
    let (apart, shared) = (drawn(false), drawn(true));
    let panels = |page: &str| page.matches("data-cells=").count();
    assert_eq!((panels(&apart), panels(&shared)), (2, 1));
    // Column 0: row 0 is mostly of a; column 1: row 0 is of b, row 1 equally of both, which is a's.
    let group = |page: &str, colour: &str| {
        let group = page.split(&format!("<g class=\"{colour}\"")).nth(1).expect("a group");
        let paths = group.split("</g>").next().unwrap().to_owned();
        (paths.contains("M0 0"), paths.contains("M1 0"), paths.contains("M1 1"))
    };
    assert_eq!(group(&shared, "k0"), (true, false, true));
    assert_eq!(group(&shared, "k1"), (false, true, false));
}

#[test]
fn verdicts_say_the_same_everywhere() {
    let verdict = |name: &str, grade, score: f64| Verdict::new(name, grade, "Why.").score(score);
    let document = one_block(Block::Verdicts(vec![
        verdict("A", Grade::Kept, 7.0),
        verdict("Long name", Grade::Broken, 0.034).detail("seen", "3 of 4"),
        verdict("C", Grade::Unknown, f64::NAN),
    ]));
    let text = terminal::render(&document, 60, Style::PLAIN);
    let lines: Vec<&str> = text.lines().skip(4).collect();
    assert_eq!(
        lines,
        [
            "",
            "  kept      1.00  A          Why.",
            "  broken    0.03  Long name  Why.",
            "  unknown      -  C          Why.",
        ]
    );
    let rich = terminal::render(&document, 60, Style::RICH);
    assert!(rich.contains("\x1b[1;31mbroken") && rich.contains("\x1b[32mkept"));

    let page = html::render(&document);
    for shown in ["</svg>kept", "</svg>broken", "<b>0.03</b>", "--part:1.0000", "<dd>3 of 4</dd>"] {
        assert!(page.contains(shown), "{shown} on the page");
    }
}

#[test]
fn curves_keep_their_points() {
    let curve = |name: &str, shape, points: &[(f64, f64)]| Curve::new(name, shape, points.to_vec());
    let chart = Chart::Curves(Curves {
        title: "t".into(),
        caption: "c".into(),
        x: Axis::linear("rank", Unit::Count),
        y: Axis::log("writes", Unit::Count),
        series: vec![
            curve("a", CurveShape::Steps, &[(0.0, 100.0), (50.0, 10.0), (100.0, 1.0)]),
            curve("b", CurveShape::Dots, &[(25.0, f64::NAN), (75.0, 100.0)]),
        ],
        marks: vec![Mark { x: 50.0, label: "half".into() }],
    });
    assert_eq!(
        json::chart(&chart)["data"].to_string(),
        concat!(
            r#"{"x":{"label":"rank","unit":"count","scale":"linear"},"#,
            r#""y":{"label":"writes","unit":"count","scale":"log"},"series":["#,
            r#"{"name":"a","shape":"steps","points":[[0.0,100.0],[50.0,10.0],[100.0,1.0]]},"#,
            r#"{"name":"b","shape":"dots","points":[[25.0,null],[75.0,100.0]]}],"#,
            r#""marks":[{"x":50.0,"label":"half"}]}"#
        )
    );
    let page = html::render(&one_block(Block::Chart(chart.clone())));
    for drawn in [
        "d=\"M0 0h0H500V500H1000V1000\"",
        "d=\"M750 0h0\"",
        "d=\"M500 0V1000\"",
        "data-points=\"0,100 50,10 100,1\"",
        "Marks: half: 50.",
    ] {
        assert!(page.contains(drawn), "{drawn} on the page");
    }
    let text = terminal::render(&one_block(Block::Chart(chart)), 40, Style::PLAIN);
    let plot: Vec<&str> = text.lines().skip(8).take(9).collect();
    assert_eq!(
        plot,
        [
            "  100  ****************|       o",
            "                       |",
            "                       |",
            "                       |",
            "                       ****************",
            "                       |",
            "                       |",
            "                       |",
            "    1                  |               *",
        ]
    );
}

#[test]
fn json_keeps_numbers_units_and_order() {
    let columns =
        vec![Column::text("Operation"), Column::number("p99", Unit::Nanos), Column::text("p99")];
    let mut table = Table::new("c", columns);
    table.rows.push(vec!["read".into(), Value::Int(u64::MAX), Value::Float(f64::NAN)]);
    table.rows.push(vec!["trim".into()]);
    assert_eq!(
        json::table(&table).to_string(),
        concat!(
            r#"{"caption":"c","columns":[{"key":"operation","name":"Operation","unit":null},"#,
            r#"{"key":"p99","name":"p99","unit":"ns"},{"key":"p99_3","name":"p99","unit":null}],"#,
            r#""rows":[{"operation":"read","p99":18446744073709551615,"p99_3":null},"#,
            r#"{"operation":"trim","p99":null,"p99_3":null}]}"#
        )
    );
    assert_eq!(json::number(f64::INFINITY), serde_json::Value::Null);
    let document = sample::document();
    let Block::Chart(heatmap) = &document.sections[2].blocks[3] else { panic!("no heat map") };
    assert_eq!(json::chart(heatmap)["data"]["layers"][2]["name"], "discard");
}

/// The name of a row and its marks stay readable on a narrow screen.
#[test]
fn text_that_is_wider_than_its_column_takes_several_lines() {
    let columns = vec![
        Column::text("change"),
        Column::number("before", Unit::Bytes),
        Column::number("after", Unit::Bytes),
    ];
    let mut table = Table::new("c", columns);
    table.rows.push(vec!["separate data by death time *+".into(), Value::Int(10), Value::Int(9)]);
    table.rows.push(vec!["merge".into(), Value::Int(1), Value::Int(1)]);
    let text = terminal::render(&one_block(Block::Table(table)), 40, Style::PLAIN);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.contains("change")).collect();
    let expected = [
        "  change                   before  after",
        "  separate data by death     10 B    9 B",
        "  time *+",
        "  merge                       1 B    1 B",
    ];
    assert_eq!(lines, expected);
}

/// Words, numbers with their units, and verdicts are never cut: a column of text is at least as
/// wide as its longest word, and headings of numbers take several lines.
#[test]
fn words_and_numbers_are_whole_on_a_narrow_screen() {
    let columns = vec![
        Column::text("what"),
        Column::text("place"),
        Column::text("published"),
        Column::number("difference in all runs", Unit::Percent),
        Column::text("verdict"),
    ];
    let mut table = Table::new("c", columns);
    let what = "pages copied by the drive over items written";
    let row = [what, "Table I", "170 MB/s"].map(Value::from);
    table.rows.push([&row[..], &[Value::Float(0.5), "unexplained".into()]].concat());
    let text = terminal::render(&one_block(Block::Table(table)), 64, Style::PLAIN);
    assert!(!text.contains('~'), "{text}");
    for part in ["published", "170 MB/s", "50%", "unexplained", "difference"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.lines().all(|line| line.len() <= 64), "{text}");
}

#[test]
fn graded_cells_have_marks_colours_and_plain_numbers() {
    let columns = vec![Column::text("app"), Column::number("ext4", Unit::Ratio)];
    let mut table = Table::new("c", columns);
    let cells = [
        ("a", 0.912, Grade::Kept),
        ("b", 0.5, Grade::Strained),
        ("c", 0.1, Grade::Broken),
        ("d", f64::NAN, Grade::Broken),
    ];
    for (name, score, grade) in cells {
        table.rows.push(vec![name.into(), Value::Graded(score, grade)]);
    }
    let document = one_block(Block::Table(table.clone()));
    let plain = terminal::render(&document, 40, Style::PLAIN);
    for line in ["  a      0.91\n", "  b    ~ 0.50\n", "  c    ! 0.10\n", "  d         -\n"] {
        assert!(plain.contains(line), "{line:?} is not in {plain}");
    }
    let colored = terminal::render(&document, 40, Style::RICH);
    assert!(colored.contains("\u{1b}[1;31m! 0.10\u{1b}[0m"), "{colored}");
    let page = html::render(&document);
    assert!(page.contains("<td class=\"n strained\">~ 0.50"), "the cell is not in the page");
    assert_eq!(json::table(&table)["rows"][2]["ext4"], 0.1);
}

#[test]
fn the_same_document_gives_the_same_bytes() {
    let (one, two) = (sample::document(), sample::document());
    assert_eq!(html::render(&one), html::render(&two));
    let charts = |document: &Document| -> Vec<String> {
        let blocks = document.sections.iter().flat_map(|section| &section.blocks);
        let chart = |block: &Block| match block {
            Block::Chart(chart) => Some(json::chart(chart).to_string()),
            _ => None,
        };
        blocks.filter_map(chart).collect()
    };
    assert_eq!(charts(&one), charts(&two));
}
