//! Charts of every form.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A figure of one panel.
fn figure(title: &str, lines: Vec<Line>) -> Figure {
    let panels = vec![Panel { metric: "returns".to_owned(), lines, ..Panel::default() }];
    Figure {
        title: title.to_owned(),
        along: "environment steps".to_owned(),
        panels,
        columns: 1,
        ..Figure::default()
    }
}
#[test]
fn a_chart_has_few_lines_behind_the_curve() {
    let points: Vec<Point> = (0..100).map(|step| (step * 1000, step as f64)).collect();
    let text = learning_curve("catch-ppo, seed 0", &points, 100).unwrap();
    assert!(text.contains("catch-ppo, seed 0") && text.contains("environment steps"), "{text}");
    let faint = text.matches("#E1E1E1").count();
    assert!((3..=12).contains(&faint), "{faint} lines: {text}");
}

#[test]
fn every_curve_can_be_drawn() {
    for points in
        [&[][..], &[(0, 1.0)], &[(1, 0.0), (2, 0.0)], &[(1, f64::NAN), (5, -1e9), (9, 1e9)]]
    {
        let svg = learning_curve("a <run> & more", points, 7).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{points:?}");
    }
}

/// Horizontal lines at the heights 1, 2, .., each with a name, as SVG.
fn lines(number: usize) -> String {
    let line = |number: usize| Line {
        name: format!("setting {number}"),
        points: (0..=10).map(|at| (f64::from(at), number as f64)).collect(),
        ..Line::default()
    };
    let lines = (1..=number).map(line).collect();
    figure("", lines).svg().unwrap()
}

/// The numbers of an attribute in the last element that begins with `tag` before `end`.
fn numbers(text: &str, end: usize, tag: &str, attribute: &str) -> Vec<i32> {
    let element = &text[text[..end].rfind(tag).unwrap()..];
    let begin = element.find(&format!(" {attribute}=\"")).unwrap() + attribute.len() + 3;
    let value = element[begin..].split('"').next().unwrap();
    value.split([' ', ',']).filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn the_legend_covers_no_curve() {
    for number in [2, 12, 24] {
        let text = lines(number);
        let place = |name: &str| {
            let at = text.find(&format!("\n{name}\n")).unwrap();
            let of = |attribute| numbers(&text, at, "<text", attribute)[0];
            (of("y"), of("x"))
        };
        let below = place("environment steps").0;
        let names: Vec<_> =
            (1..=number).map(|number| place(&format!("setting {number}"))).collect();
        let height = numbers(&text, 50, "<svg", "height")[0];
        assert!(names.iter().all(|(y, _)| (below + 10..height).contains(y)), "{names:?}");
        let mut places = names.clone();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), number, "{names:?}");
    }
}

/// More lines than colours still look different.
#[test]
fn twenty_four_lines_look_different() {
    let text = lines(24);
    // For each height in the chart: the colours, and the ends of the dashes.
    let mut looks: BTreeMap<i32, Vec<String>> = BTreeMap::new();
    for (at, tag) in text.match_indices("<polyline") {
        let end = at + tag.len();
        let points = numbers(&text, end, tag, "points");
        let xs: Vec<i32> = points.iter().step_by(2).copied().collect();
        let colour = text[at..].split("stroke=\"").nth(1).unwrap();
        let look = format!("{} {:?}", &colour[..7], (xs[0], xs[xs.len() - 1]));
        if points[1] < 380 && !["#E1E1E1", "#000000"].contains(&&colour[..7]) {
            looks.entry(points[1]).or_default().push(look);
        }
    }
    let different: BTreeSet<&Vec<String>> = looks.values().collect();
    assert_eq!((looks.len(), different.len()), (24, 24), "{looks:?}");
}

#[test]
fn a_picture_has_the_lines_and_the_letters() {
    let decoded = |caption: &str, points: &[(f64, f64)]| {
        let lines = vec![Line { points: points.to_vec(), ..Line::default() }];
        let mut figure = figure(caption, lines);
        figure.panels = vec![figure.panels[0].clone(); 2];
        let file = figure.png().unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!(info.width, 720);
        pixels.as_chunks::<3>().0.to_vec()
    };
    let curve = [(0.0, 0.0), (5.0, 3.0), (10.0, 4.0)];
    let (named, unnamed, empty) =
        (decoded("seed 0", &curve), decoded("", &curve), decoded("seed 0", &[]));
    let blue = |pixel: &&[u8; 3]| pixel[2] > pixel[0].saturating_add(60);
    let count = |pixels: &[[u8; 3]]| pixels.iter().filter(blue).count();
    assert!(count(&named) > 1000 && count(&empty) == 0, "{} pixels", count(&named));
    // The dark letters of the caption and of the metric's name are above the chart. Without a
    // caption there are fewer of them.
    let dark = |pixels: &[[u8; 3]]| {
        let above = &pixels[..720 * 35];
        above.iter().filter(|pixel| pixel.iter().all(|part| *part < 96)).count()
    };
    assert!(dark(&named) > dark(&unnamed) + 60, "{}, {}", dark(&named), dark(&unnamed));
}

#[test]
fn panels_share_names_and_colours() {
    let line = |name: &str, height: f64| Line {
        name: name.to_owned(),
        points: vec![(0.0, height), (9.0, height)],
        ..Line::default()
    };
    let mut figure = figure("", vec![line("a", 1.0), line("b", 2.0)]);
    let mut other = figure.panels[0].clone();
    other.title = "maze".to_owned();
    other.lines = vec![line("b", 3.0)];
    figure.panels.push(other);
    figure.columns = 2;
    figure.note = "mean of 5 seeds; band: 95% bootstrap interval".to_owned();
    let text = figure.svg().unwrap();
    for (part, times) in [("\na\n", 1), ("\nb\n", 1), ("\nmaze\n", 1), ("95% bootstrap", 1)] {
        assert_eq!(text.matches(part).count(), times, "{part}: {text}");
    }
    // Two lines and a sample in the legend with the second colour.
    assert_eq!(text.matches("stroke=\"#E69F00\"").count(), 3, "{text}");
}

#[test]
fn a_size_is_kept_and_a_long_name_fits_into_it() {
    let long = "agent.network = ".repeat(40);
    let lines = ["first", &long].map(|name| Line { name: name.to_owned(), ..Line::default() });
    let mut figure = figure("A title", lines.to_vec());
    figure.style.size = Some((500, 400));
    let text = figure.svg().unwrap();
    assert!(text.starts_with("<svg width=\"500\" height=\"400\""), "{}", &text[..90]);
    assert!(text.contains('…') && !text.contains(&long), "{text}");
}

#[test]
fn a_logarithmic_axis_has_powers_of_ten() {
    let points = (0..=6).map(|at| (f64::from(at), 10.0_f64.powi(at - 3))).collect();
    let mut figure = figure("", vec![Line { points, ..Line::default() }]);
    figure.style.log = true;
    let text = figure.svg().unwrap();
    for label in ["0.01", "0.1", "10", "1k"] {
        assert!(text.contains(&format!("\n{label}\n")), "{label}: {text}");
    }
}

/// The PDF has a page with the letters of the title.
#[test]
fn a_pdf_has_one_page_with_text() {
    let file = figure("A title", vec![Line { points: vec![(0.0, 1.0)], ..Line::default() }])
        .pdf()
        .unwrap();
    assert!(file.starts_with(b"%PDF-"));
    let has = |part: &[u8]| file.windows(part.len()).filter(|window| *window == part).count();
    assert_eq!(has(b"/Type /Page\n") + has(b"/Type/Page/"), 1);
    assert!(has(b"/FontFile2") + has(b"/FontFile3") >= 1, "the font is in the file");
}
