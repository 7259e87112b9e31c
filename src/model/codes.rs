//! A set of HTTP status codes, as `--accept` takes it.

use std::fmt;
use std::str::FromStr;

/// Status codes that count as ok: `200-299,404`. Codes are 100 to 999.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codes(Vec<(u16, u16)>);

impl Codes {
    /// Whether `status` is in the set.
    pub fn contains(&self, status: u16) -> bool {
        self.0
            .iter()
            .any(|&(from, to)| (from..=to).contains(&status))
    }
}

impl Default for Codes {
    fn default() -> Codes {
        Codes(vec![(200, 299)])
    }
}

impl FromStr for Codes {
    type Err = String;

    fn from_str(text: &str) -> Result<Codes, String> {
        let code = |part: &str| match part.trim().parse::<u16>() {
            Ok(code @ 100..=999) => Ok(code),
            _ => Err(format!(
                "`{part}` is no status code: write codes and ranges such as 200-299,404"
            )),
        };
        text.split(',')
            .map(|part| match part.split_once('-') {
                Some((from, to)) => match (code(from)?, code(to)?) {
                    (from, to) if from <= to => Ok((from, to)),
                    _ => Err(format!(
                        "`{part}` runs backwards: write the lower code first"
                    )),
                },
                None => code(part).map(|code| (code, code)),
            })
            .collect::<Result<Vec<_>, _>>()
            .map(Codes)
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (from, to)) in self.0.iter().enumerate() {
            let comma = if n > 0 { "," } else { "" };
            if from == to {
                write!(f, "{comma}{from}")?;
            } else {
                write!(f, "{comma}{from}-{to}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_codes_are_read_and_written_alike() {
        let codes: Codes = "200-299,404".parse().unwrap();
        assert!(codes.contains(200) && codes.contains(299) && codes.contains(404));
        assert!(!codes.contains(300) && !codes.contains(403));
        assert_eq!(codes.to_string(), "200-299,404");
    }

    #[test]
    fn nonsense_is_refused_with_the_right_form() {
        for text in ["", "abc", "99", "1000", "299-200", "200-", "200,,404", "-5"] {
            assert!(text.parse::<Codes>().is_err(), "{text}");
        }
    }
}
