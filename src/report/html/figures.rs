//! Numbers for people: short, with their unit, alike everywhere on the page.

use bytesize::ByteSize;

/// A number of things; thousands are set apart by a narrow blank.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A size.
pub(super) fn bytes(n: u64) -> String {
    ByteSize(n).display().iec().to_string()
}

/// A latency.
pub(super) fn millis(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 99_950.0 => format!("{:.1} s", ms / 1e3),
        ms => seconds(ms / 1e3),
    }
}

/// A span: `4.6 s`, `2 m 05 s`, `3 h 20 m`.
pub(super) fn seconds(s: f64) -> String {
    let whole = s.round() as u64;
    match s {
        s if s < 60.0 && s.fract().abs() < 0.05 => format!("{s:.0} s"),
        s if s < 59.95 => format!("{s:.1} s"),
        s if s < 3599.5 => format!("{} m {:02} s", whole / 60, whole % 60),
        s if s < 172_800.0 => format!("{} h {:02} m", whole / 3600, whole / 60 % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3600 % 24),
    }
}

/// A rate per second.
pub(super) fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 100.0 => count(r.round() as u64),
        r if r >= 10.0 => format!("{r:.1}"),
        r => format!("{r:.2}"),
    }
}

/// A share of the whole; what is there but small is not shown as nothing.
pub(super) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 1.0 => "< 1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// An instant, from milliseconds since the Unix epoch.
pub(super) fn instant(unix_ms: i64) -> String {
    let stamp = jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default();
    let text = format!("{stamp:.0}");
    text.replace('T', " ").replace('Z', " UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_have_units() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!((count(0), count(999)), ("0".to_owned(), "999".to_owned()));
        assert_eq!(millis(0.31), "0.3 ms");
        assert_eq!(millis(1_234.0), "1.2 s");
        assert_eq!(seconds(5.0), "5 s");
        assert_eq!(seconds(125.2), "2 m 05 s");
        assert_eq!(seconds(12_000.0), "3 h 20 m");
        assert_eq!(
            (percent(0.004), percent(0.5)),
            ("< 1 %".into(), "50 %".into())
        );
        assert_eq!(instant(1_769_890_240_126), "2026-01-31 20:10:40 UTC");
    }
}
