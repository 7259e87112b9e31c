//! Numbers and instants as records write them.
//!
//! By hand, because a dozen of them are in each exchange and the standard formatter took most of
//! what an exchange cost.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::Offset;

/// An instant: RFC 3339, UTC, to the millisecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct Date([u8; 24]);

impl Date {
    /// The instant so long after the Unix epoch; beyond the year 9999, the epoch.
    pub(super) fn of(unix: Duration) -> Date {
        let millis = i64::try_from(unix.as_millis()).unwrap_or(i64::MAX);
        let stamp = Timestamp::from_millisecond(millis).unwrap_or_default();
        let at = Offset::UTC.to_datetime(stamp);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let parts = [
            (0..4, at.year()),
            (5..7, at.month().into()),
            (8..10, at.day().into()),
            (11..13, at.hour().into()),
            (14..16, at.minute().into()),
            (17..19, at.second().into()),
            (20..23, at.millisecond()),
        ];
        for (place, part) in parts {
            fill(&mut text[place], part.unsigned_abs().into());
        }
        Date(text)
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// `n`, at the end of `out`.
pub(super) fn append(out: &mut Vec<u8>, n: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(n).as_bytes());
}

/// As many last digits of `n` as there is room for, zeros before them.
pub(super) fn fill(room: &mut [u8], mut n: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (n % 10) as u8;
        n /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_instants_are_written_as_the_standard_formatters_do() {
        for n in [0, 7, 10, 1_234_567_890, u64::MAX] {
            let mut text = b"n=".to_vec();
            append(&mut text, n);
            assert_eq!(text, format!("n={n}").as_bytes());
        }
        let mut room = [b'x'; 5];
        fill(&mut room, 123);
        assert_eq!(&room, b"00123");
        for millis in [0, 951_782_399_999, 1_769_890_240_126, 253_402_207_199_999] {
            let stamp = Timestamp::from_millisecond(millis).unwrap();
            let date = Date::of(Duration::from_millis(millis.unsigned_abs()));
            let text = std::str::from_utf8(date.as_bytes()).unwrap();
            assert_eq!(text, format!("{stamp:.3}"));
        }
        let never = Date::of(Duration::MAX);
        assert_eq!(never.as_bytes(), b"1970-01-01T00:00:00.000Z");
    }
}
