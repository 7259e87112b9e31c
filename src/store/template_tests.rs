use proptest::prelude::*;

use super::*;
use crate::store::{Names, test_job};

fn name(template: &str, id: &str, host: &str) -> String {
    let mut job = test_job(id);
    job.id_given = true;
    job.line = 7;
    job.url = url::Url::parse(&format!("http://{host}/x")).unwrap();
    Names::new(Some(template.parse().unwrap())).file(&job, Some("text/html"))
}

#[test]
fn placeholders_make_paths_below_bodies() {
    assert_eq!(
        name("{host}/{id}{ext}", "p1", "o.test"),
        "bodies/o.test/p1.html"
    );
    assert_eq!(name("{id}.{ext}", "p1", "o.test"), "bodies/p1.html");
    assert_eq!(name("{id}", "p1", "o.test"), "bodies/p1");
    let hash = id_hash("p1");
    assert_eq!(
        name("{hash}{ext}", "p1", "o.test"),
        format!("bodies/{hash}.html")
    );
    assert_eq!(
        name("{line}-{host}{ext}", "p1", "o.test"),
        format!("bodies/7-o.test~{hash}.html")
    );
    assert_eq!(
        name("all/page", "p1", "o.test"),
        format!("bodies/all/page~{hash}")
    );
    assert_eq!(name("{id}/{line}{ext}", "p1", "[::1]"), "bodies/p1/7.html");
}

#[test]
fn hosts_and_literals_that_name_devices_or_nothing_are_made_harmless() {
    assert_eq!(name("{host}/{id}", "p", "con"), "bodies/_con/p");
    assert_eq!(name("{host}/{id}", "p", "nul.test"), "bodies/_nul.test/p");
    assert_eq!(name("{host}/{id}", "p", "a.test."), "bodies/a.test/p");
    assert_eq!(name("{host}/{id}", "p", "[::1]"), "bodies/_1_/p");
    assert_eq!(name("x./{id}", "p", "a"), "bodies/x/p");
}

#[test]
fn templates_that_leave_the_directory_or_cannot_be_names_are_usage_errors() {
    for (template, word) in [
        ("", "path"),
        ("/etc/{id}", "path"),
        ("../{id}", "path"),
        ("a//{id}", "path"),
        ("{id}/", "path"),
        ("{id}/..", "path"),
        ("{url}", "{url}"),
        ("{ID}", "{ID}"),
        ("{id", "brace"),
        ("id}", "brace"),
        ("a\\{id}", "file name"),
        ("a:{id}", "file name"),
        ("{id}\n", "file name"),
    ] {
        let error = template.parse::<NameTemplate>().unwrap_err();
        assert!(error.contains(word), "{template}: {error}");
    }
    assert!("x".repeat(300).parse::<NameTemplate>().is_err());
    assert!("{id}{id}{id}{id}".parse::<NameTemplate>().is_err());
    assert!(
        "{id}/"
            .repeat(60)
            .trim_end_matches('/')
            .parse::<NameTemplate>()
            .is_err()
    );
}

proptest! {
    #[test]
    fn any_template_gives_bounded_names_inside_that_differ_between_ids(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["{id}", "{host}", "{line}", "{ext}", "{hash}", "/", ".", "..", "a", "CON", "~", " "]),
            1..8,
        ),
        a in any::<String>(),
        b in "[a-zA-Z.~_-]{0,6}",
    ) {
        let template: String = pieces.concat();
        prop_assume!(template.parse::<NameTemplate>().is_ok() && a != b);
        let (one, two) = (name(&template, &a, "Nul.test"), name(&template, &b, "nul.test"));
        prop_assert_ne!(one.to_lowercase(), two.to_lowercase());
        prop_assert!(one.starts_with("bodies/"));
        for part in one.split('/') {
            prop_assert!((1..=255).contains(&part.len()), "{part}");
            prop_assert!(!matches!(part, "." | "..") && !is_device(part), "{part}");
        }
    }
}
