//! Numbers in readable form.

use podracer_envs::host::printable;

/// `1234567` as `1.23M`.
pub(crate) fn count(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        size if size >= 999.5e6 => (value / 1e9, "G"),
        size if size >= 999.5e3 => (value / 1e6, "M"),
        size if size >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let decimals = match scaled.abs() {
        _ if scaled.fract() == 0.0 => 0,
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.decimals$}{unit}")
}

/// `1610612736` as `1.50 GiB`.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut scaled = value as f64;
    let mut unit = None;
    for next in UNITS {
        if scaled < 1024.0 {
            break;
        }
        scaled /= 1024.0;
        unit = Some(next);
    }
    unit.map_or_else(|| format!("{value} bytes"), |unit| format!("{scaled:.2} {unit}"))
}

/// `1 device`, `2 devices`.
pub(crate) fn plural(number: usize, what: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {what}{s}")
}

/// The episodes of a mean return, as axes and tables name them: whole iterations with at least 100
/// episodes, if there are as many.
pub(crate) fn last_episodes(episodes: u64) -> String {
    match episodes {
        100.. => "last 100 episodes or more".to_owned(),
        fewer => format!("last {}", plural(fewer as usize, "episode")),
    }
}

/// The rows with columns of equal width, two spaces apart.
pub(crate) fn aligned(rows: &[Vec<String>]) -> String {
    let shown = |cell: &String| printable(cell).replace(['\n', '\t'], " ");
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(shown).collect()).collect();
    let columns = rows.first().map_or(0, Vec::len);
    let length = |row: &Vec<String>, column: usize| row[column].chars().count();
    let widths: Vec<usize> = (0..columns)
        .map(|column| rows.iter().map(|row| length(row, column)).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let numbers =
            [0.0, 64.0, 999.0, 1000.0, 12_345.0, 999_999.0, 1_234_567.0, 2.5e9, 0.25, -3.5];
        let texts = numbers.map(count);
        assert_eq!(
            texts,
            ["0", "64", "999", "1k", "12.3k", "1.00M", "1.23M", "2.50G", "0.25", "-3.50"]
        );
        assert_eq!(bytes(1000), "1000 bytes");
        assert_eq!(bytes(1_610_612_736), "1.50 GiB");
        assert_eq!(plural(1, "device") + &plural(0, "call"), "1 device0 calls");
    }
}
