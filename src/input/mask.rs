//! Showing an entry that could not be used without the login it may hold.
//!
//! A refused text is not a URL, so where its login ends is a guess; this one errs towards
//! hiding. A URL that was understood is masked exactly, in `target`.

/// Longest text shown, in characters.
const MAX_SHOWN: usize = 200;

/// `raw` with whatever may be a login replaced by `***`.
pub fn masked(raw: &str) -> String {
    let start = raw.find("://").map_or(0, |at| at + 3);
    let rest = &raw[start..];
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let in_authority = rest[..end].rfind('@');
    let place = &rest[in_authority.map_or(0, |at| at + 1)..end];
    // A blank or a second scheme means that this is not one URL; an authority that is no
    // `host:port` may be the first half of a login with a raw `/`, `?` or `#`.
    let cut_short = !is_place(place) || raw.contains(char::is_whitespace) || rest.contains("://");
    // Without `://` (`http//…`) what stands before the first slash says nothing.
    let cut_short = cut_short || (start == 0 && may_hold_login(rest));
    let login_end = if cut_short {
        rest.rfind('@')
    } else {
        in_authority
    };
    match login_end {
        // In a text of several URLs the login may also be of the second one, whose first
        // part would stay: hide all up to the last `@`.
        Some(at) => format!("{}***{}", &raw[..start], &rest[at..]),
        None => raw.to_owned(),
    }
}

/// Whether there is a colon somewhere before an `@`.
fn may_hold_login(text: &str) -> bool {
    text.rsplit_once('@')
        .is_some_and(|(login, _)| login.contains(':'))
}

/// Cuts a masked text to what a record shows.
pub fn cut(text: &str) -> &str {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => &text[..at],
        None => text,
    }
}

fn is_place(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (text, ""),
    };
    port.bytes().all(|b| b.is_ascii_digit())
        && !host.is_empty()
        && host
            .chars()
            .all(|c| c.is_alphanumeric() || "-._:[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_login_stays_readable_wherever_it_stands() {
        for raw in [
            "http://hunter2:hunter2@o.test:x/",
            "http//hunter2:hunter2@o.test:1/",
            "http:/hunter2:hunter2@o.test:1",
            "ftp://hunter2:hunter2@o.test/",
            "hunter2:hunter2@o.test/x",
            "http://hunter2:hunter2/hunter2@o.test/",
            "http://hunter2:hunter2#hunter2@o.test/",
            "http://hunter2:hun ter2hunter2@o.test/",
            "http://o.test/ http://hunter2:hunter2@o.test/",
            "http://hunter2:hunter2@a.test/ http://hunter2:hunter2@b.test/",
            "http://hunter2@hunter2@o.test:99999/",
        ] {
            let shown = masked(raw);
            assert!(!shown.contains("hunter2"), "{shown}");
            assert!(shown.contains("***@"), "{shown}");
        }
    }

    #[test]
    fn texts_without_login_are_shown_as_they_are() {
        for raw in [
            "http://o.test/@name/\\",
            "http://[::1]:99999/@x",
            "o.test/x",
            "http://o.test/a b",
            "not a url",
            "",
        ] {
            assert_eq!(masked(raw), raw);
        }
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        assert_eq!(cut(&"é".repeat(300)), "é".repeat(200));
        assert_eq!(cut("short"), "short");
    }
}
