use super::*;

fn environment(name: &str) -> Option<String> {
    let value = match name {
        "HOST" => "10.0.0.1",
        "PASS" => "p:@ss/#%41",
        "LOGIN" => "al:p@ss",
        "WHOLE" => "socks5://al:pw@10.0.0.1:9",
        _ => return None,
    };
    Some(value.to_owned())
}

/// `scheme user pass host port`, `-` for an absent login.
fn read(text: &str) -> Result<String, Reason> {
    let address = parse(text, &Variables::new(&environment))?;
    let login = match &address.login {
        Some((user, password)) => format!("{user} {password}"),
        None => "- -".to_owned(),
    };
    let scheme = address.scheme.as_str();
    Ok(format!(
        "{scheme} {login} {} {}",
        address.place.host, address.place.port
    ))
}

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(read(text).as_deref(), Ok(*expected), "{text}");
    }
}

fn refused(table: &[&str]) {
    for text in table {
        let Err(reason) = read(text) else {
            panic!("{text} was read as {:?}", read(text));
        };
        assert!(!reason.contains("hunter2"), "{text}: {reason}");
    }
}

#[test]
fn the_four_forms_are_read_with_and_without_scheme() {
    check(&[
        ("h.test:81", "http - - h.test 81"),
        ("al:pw@h.test:81", "http al pw h.test 81"),
        ("al@h.test:81", "http al  h.test 81"),
        ("al:@h.test:81", "http al  h.test 81"),
        ("h.test:81:al:pw", "http al pw h.test 81"),
        ("127.0.0.1:81:al-s7:12345", "http al-s7 12345 127.0.0.1 81"),
        ("socks5://h.test:81:al:pw", "socks5 al pw h.test 81"),
        ("https://al:pw@h.test:81/", "https al pw h.test 81"),
        ("[::1]:81", "http - - ::1 81"),
        ("al:pw@[::1]:81", "http al pw ::1 81"),
        ("[::1]:81:al:pw:x", "http al pw:x ::1 81"),
    ]);
}

#[test]
fn schemes_have_default_ports_and_no_case() {
    check(&[
        ("HTTP://H.test/", "http - - h.test 80"),
        ("https://h.test", "https - - h.test 443"),
        ("Socks5H://h.test", "socks5 - - h.test 1080"),
    ]);
    refused(&[
        "socks://h.test:1",
        "socks4://h:1",
        "socks9://h:1",
        "ftp://h:1",
        "://h:1",
    ]);
}

#[test]
fn logins_are_decoded_once_and_split_at_the_last_at_sign() {
    check(&[
        (
            "http://us%40er:p%3A%40ss%2F%23%25@127.0.0.1:81",
            "http us@er p:@ss/#% 127.0.0.1 81",
        ),
        (
            "http://us@er:p:@ss/#%@127.0.0.1:81",
            "http us@er p:@ss/#% 127.0.0.1 81",
        ),
        (
            "us@er:p:@ss/#%@127.0.0.1:81",
            "http us@er p:@ss/#% 127.0.0.1 81",
        ),
        ("socks5://u:p:@@h.test:81", "socks5 u p:@ h.test 81"),
        ("al:%2541@h.test:81", "http al %41 h.test 81"),
        ("h.test:81:al:p%40x", "http al p@x h.test 81"),
        ("al:p://x@h.test:81", "http al p://x h.test 81"),
    ]);
}

#[test]
fn a_password_with_an_at_sign_is_read_where_the_host_is_beyond_doubt() {
    check(&[("127.0.0.1:81:al:p@ss", "http al p@ss 127.0.0.1 81")]);
    refused(&["127.0.0.1:81:al:p@hunter2:99", "gate:81:al:p@hunter2"]);
}

#[test]
fn reversed_and_ambiguous_forms_are_refused_and_not_guessed() {
    refused(&[
        "al-s7:hunter2:127.0.0.1:81",
        "alice:1234:127.0.0.1:81",
        "alice:1234:gate.test:81",
        "alice:1234:[::1]:81",
        "8080:8080:8080:8080",
        "alice:1234:bob:5678",
        "10.0.0.1:80:10.0.0.2:81",
    ]);
}

#[test]
fn what_has_no_reading_is_refused() {
    refused(&[
        "",
        "h.test",
        "h.test:",
        "h.test:0",
        "h.test:99999",
        "http://al:hunter2@h.test:99999",
        "h.test:81:hunter2",
        "8080",
        "8080:80",
        "http://",
        "http://@",
        "al:hunter2@",
        "al:hunter2@h.test",
        "::1:81",
        "2001:db8::1:81",
        "fd00:1234:1:2:3:4:5:6",
        "[::1",
        "http://h.test:81/hunter2",
        "http://h.test:81?hunter2",
        "\"h.test:81\"",
        "h.test:81,",
        "\"h.test:81\",",
        "h.test:81;",
        "al:%ff@h.test:81",
    ]);
}

#[test]
fn variables_are_values_and_do_not_change_the_form() {
    check(&[
        (
            "http://al:${PASS}@${HOST}:81",
            "http al p:@ss/#%41 10.0.0.1 81",
        ),
        (
            "${HOST}:81:al:x%41${PASS}",
            "http al xAp:@ss/#%41 10.0.0.1 81",
        ),
        ("http://${LOGIN}@h.test:81", "http al p@ss h.test 81"),
        ("${WHOLE}", "socks5 al pw 10.0.0.1 9"),
    ]);
    assert!(read("al:${NONE}@h.test:81").unwrap_err().contains("NONE"));
}
