//! Where a 3xx leads: the next request of the same job, or why there is none.
//!
//! Owns: RFC 9110 §15.4 and the method rules of the Fetch standard ("HTTP-redirect fetch").
//! Leaves to others: the budget of the new origin (`frontier` files the job there) and what
//! the answer says about exit and origin.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::{Method, StatusCode, header::LOCATION};
use url::Url;

use crate::model::{Blame, ErrorKind, Failure, Head, Origin};

use super::work::{Content, Home, Hop, Work};

/// The next request after this answer. `None`: the answer is no redirect to follow.
pub(super) fn follow(work: &Work, head: &Head, max_redirects: u32) -> Option<Result<Hop, Failure>> {
    if max_redirects == 0 || !matches!(head.status, 301..=303 | 307 | 308) {
        return None;
    }
    Some(next_request(work, head, max_redirects))
}

fn next_request(work: &Work, head: &Head, max_redirects: u32) -> Result<Hop, Failure> {
    let target = location(work.target(), head)?;
    let (method, rewritten) = method_after(head.status, work.method());
    let mut passed = work
        .hop
        .as_ref()
        .map_or_else(Vec::new, |hop| hop.passed.clone());
    passed.push(mark(work.method(), work.target()));
    if passed.contains(&mark(&method, &target)) {
        return Err(looping(format!("redirects lead back to {target}")));
    }
    if passed.len() > max_redirects as usize {
        return Err(looping(format!("more than {max_redirects} redirects")));
    }
    let was_left = work.left_origin();
    Ok(Hop {
        home: if was_left || leaves(work.target(), &target) {
            Home::Left
        } else {
            Home::AtOrigin
        },
        content: match work.hop.as_ref().map(|hop| hop.content) {
            Some(Content::Dropped) => Content::Dropped,
            Some(Content::Kept) | None => rewritten,
        },
        target,
        method,
        passed,
    })
}

/// What a request is known by. The same for all runs; two that share it are not met by chance.
fn mark(method: &Method, url: &Url) -> u64 {
    let mut hasher = DefaultHasher::new();
    (method, url).hash(&mut hasher);
    hasher.finish()
}

/// The `Location`, made absolute, without fragment and login. The status stays in the record.
fn location(base: &Url, head: &Head) -> Result<Url, Failure> {
    let bad = |why: &str| Failure {
        kind: ErrorKind::BadRedirect,
        blame: Blame::Origin,
        detail: format!("{} {why}", head.status),
    };
    let value = head
        .headers
        .get(LOCATION)
        .ok_or_else(|| bad("without Location"))?;
    let text = std::str::from_utf8(value.as_bytes())
        .map_err(|_| bad("with a Location that is not text"))?
        .trim();
    if text.is_empty() {
        return Err(bad("with an empty Location"));
    }
    let mut target = base
        .join(text)
        .map_err(|_| bad("with a Location that is no URL"))?;
    if !matches!(target.scheme(), "http" | "https") || !target.has_host() {
        return Err(bad("with a Location that is neither http nor https"));
    }
    target.set_fragment(None);
    // Neither can fail for a URL with a host. Another site does not hand out logins here.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    Ok(target)
}

fn method_after(status: u16, method: &Method) -> (Method, Content) {
    let to_get = match StatusCode::from_u16(status) {
        Ok(StatusCode::SEE_OTHER) => !matches!(*method, Method::GET | Method::HEAD),
        Ok(StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND) => *method == Method::POST,
        _ => false,
    };
    if to_get {
        (Method::GET, Content::Dropped)
    } else {
        (method.clone(), Content::Kept)
    }
}

/// Another origin, or the same one without TLS.
fn leaves(from: &Url, to: &Url) -> bool {
    Origin::of(from) != Origin::of(to) || (from.scheme() == "https" && to.scheme() == "http")
}

fn looping(detail: String) -> Failure {
    Failure {
        kind: ErrorKind::RedirectLoop,
        blame: Blame::Origin,
        detail,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, header};

    use crate::model::{Job, Secret, Time};

    use super::*;

    fn work(method: Method, url: &str) -> Box<Work> {
        let headers = HeaderMap::from_iter([
            (header::COOKIE, HeaderValue::from_static("a=b")),
            (header::CONTENT_TYPE, HeaderValue::from_static("text/plain")),
            (header::ACCEPT, HeaderValue::from_static("*/*")),
        ]);
        let job = Job {
            id: "1".into(),
            id_given: false,
            line: 1,
            method,
            url: Url::parse(url).unwrap(),
            listed: None,
            authorization: Some(Secret::new("Basic x")),
            headers: Some(Box::new(headers)),
            body: Some(Bytes::from_static(b"body")),
            extra: None,
        };
        Work::new(job, Time::ZERO)
    }

    fn head(status: u16, location: Option<&str>) -> Head {
        let mut headers = HeaderMap::new();
        if let Some(location) = location {
            headers.insert(
                LOCATION,
                HeaderValue::from_bytes(location.as_bytes()).unwrap(),
            );
        }
        Head { status, headers }
    }

    fn go(work: &mut Work, status: u16, location: &str) -> Result<String, Failure> {
        let hop = follow(work, &head(status, Some(location)), 3).unwrap()?;
        work.hop = Some(Box::new(hop));
        Ok(work.target().to_string())
    }

    #[test]
    fn relative_locations_are_made_absolute_and_lose_fragment_and_login() {
        let mut work = work(Method::GET, "http://a.test/x/y");
        assert_eq!(go(&mut work, 301, "../z?q#f").unwrap(), "http://a.test/z?q");
        assert_eq!(
            go(&mut work, 302, "//u:p@b.test/ü").unwrap(),
            "http://b.test/%C3%BC"
        );
    }

    #[test]
    fn a_location_that_leads_nowhere_fails_the_job() {
        let work = work(Method::GET, "http://a.test/");
        for location in [
            None,
            Some(""),
            Some("  "),
            Some("ftp://b.test/"),
            Some("http://"),
        ] {
            let failure = follow(&work, &head(302, location), 3).unwrap().unwrap_err();
            assert_eq!(failure.kind, ErrorKind::BadRedirect, "{location:?}");
        }
        let mut binary = head(302, None);
        binary
            .headers
            .insert(LOCATION, HeaderValue::from_bytes(b"/\xff").unwrap());
        assert!(follow(&work, &binary, 3).unwrap().is_err());
    }

    #[test]
    fn other_statuses_and_a_limit_of_zero_follow_nothing() {
        let work = work(Method::GET, "http://a.test/");
        for status in [200, 300, 304, 305, 306, 404] {
            assert!(follow(&work, &head(status, Some("/x")), 3).is_none());
        }
        assert!(follow(&work, &head(302, Some("/x")), 0).is_none());
    }

    #[test]
    fn circles_and_long_chains_end() {
        let mut work = work(Method::GET, "http://a.test/0");
        assert_eq!(
            go(&mut work, 302, "/0").unwrap_err().kind,
            ErrorKind::RedirectLoop
        );
        for step in 1..=3 {
            go(&mut work, 302, &format!("/{step}")).unwrap();
        }
        assert_eq!(
            go(&mut work, 302, "/1").unwrap_err().kind,
            ErrorKind::RedirectLoop
        );
        assert_eq!(
            go(&mut work, 302, "/4").unwrap_err().kind,
            ErrorKind::RedirectLoop
        );
    }

    #[test]
    fn methods_change_as_browsers_change_them() {
        for (status, before, after) in [
            (301, Method::POST, Method::GET),
            (302, Method::POST, Method::GET),
            (302, Method::PUT, Method::PUT),
            (303, Method::PUT, Method::GET),
            (303, Method::HEAD, Method::HEAD),
            (307, Method::POST, Method::POST),
            (308, Method::POST, Method::POST),
        ] {
            let mut work = work(before.clone(), "http://a.test/x");
            go(&mut work, status, "/y").unwrap();
            assert_eq!(*work.method(), after, "{status} {before}");
            let changed = before != after;
            assert_eq!(work.body().is_none(), changed);
            let headers = work.headers().unwrap();
            assert_eq!(headers.get(header::CONTENT_TYPE).is_none(), changed);
            assert!(headers.contains_key(header::ACCEPT));
        }
    }

    #[test]
    fn a_post_answered_by_see_other_to_itself_is_no_circle() {
        let mut work = work(Method::POST, "http://a.test/x");
        assert!(go(&mut work, 303, "/x").is_ok());
        assert!(go(&mut work, 303, "/x").is_err());
    }

    #[test]
    fn credentials_stay_behind_when_the_origin_is_left_and_do_not_come_back() {
        let mut work = work(Method::GET, "https://a.test/");
        assert!(work.authorization().is_some());
        go(&mut work, 302, "https://b.test/").unwrap();
        assert!(work.authorization().is_none() && work.left_origin());
        assert!(!work.headers().unwrap().contains_key(header::COOKIE));
        go(&mut work, 302, "https://a.test/back").unwrap();
        go(&mut work, 302, "/again").unwrap();
        assert!(work.authorization().is_none());
    }

    #[test]
    fn credentials_go_along_within_the_origin() {
        let mut work = work(Method::GET, "https://a.test/");
        go(&mut work, 302, "/same").unwrap();
        assert!(work.authorization().is_some());
        assert!(work.headers().unwrap().contains_key(header::COOKIE));
    }

    #[test]
    fn giving_up_tls_leaves_the_origin() {
        let mut work = work(Method::GET, "https://a.test/");
        go(&mut work, 302, "http://a.test/").unwrap();
        assert!(work.left_origin());
    }
}
