use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::store::test_job;

fn given(id: &str) -> String {
    let mut job = test_job(id);
    job.id_given = true;
    Names::default().file(&job, Some("text/html; charset=utf-8"))
}

#[test]
fn a_generated_id_fans_out_by_itself_and_a_given_one_by_its_hash() {
    let job = test_job("9f86d081884c7d65");
    assert_eq!(
        Names::default().file(&job, Some("Text/HTML ;charset=x")),
        "bodies/9f/86/9f86d081884c7d65.html"
    );
    assert_eq!(
        Names::default().file(&job, None),
        "bodies/9f/86/9f86d081884c7d65"
    );
    // Numbered ids would all meet in one directory.
    let dirs: HashSet<String> = (0..40)
        .map(|n| given(&format!("{n:016}"))[..12].to_owned())
        .collect();
    assert!(dirs.len() > 30);
}

#[test]
fn ids_that_could_be_paths_devices_or_too_long_are_cleaned_and_hashed() {
    assert!(given("page-7_b").ends_with("/page-7_b.html"));
    for (id, start) in [
        ("../../etc/passwd", "_etc_passwd~"),
        ("/abs", "_abs~"),
        ("..", "_~"),
        (".", "_~"),
        ("con", "con~"),
        ("LPT1", "lpt1~"),
        ("File", "file~"),
        ("a.html", "a_html~"),
        ("a\\b", "a_b~"),
        ("", "~"),
        ("é\u{301}", "_~"),
        ("a\0b", "a_b~"),
    ] {
        let file = given(id);
        let name = file.rsplit('/').next().unwrap();
        assert!(name.starts_with(start), "{id:?} became {name}");
        assert_eq!(file.split('/').count(), 4);
    }
    for id in [
        "x".repeat(64),
        "x".repeat(65),
        "x".repeat(300),
        "é".repeat(128),
    ] {
        assert!(given(&id).rsplit('/').next().unwrap().len() <= 70);
    }
}

#[test]
fn the_extension_is_one_of_a_short_list_or_none() {
    assert_eq!(extension("application/ld+json"), ".json");
    assert_eq!(extension("image/svg+xml"), ".svg");
    assert_eq!(extension("IMAGE/PNG"), ".png");
    for odd in [
        "",
        "x",
        ";",
        "text/../../x",
        "text/é",
        "+",
        "a+b",
        &"x".repeat(800),
    ] {
        assert_eq!(extension(odd), "", "{odd}");
    }
    for (ext, _) in EXTENSIONS {
        assert!(ext.len() <= EXT_MAX && ext.starts_with('.'), "{ext}");
    }
}

/// Ids that are likely to be confused: few letters, both cases, accents in two Unicode forms.
fn confusable() -> impl Strategy<Value = String> {
    let letter = prop::sample::select(vec![
        "a", "A", "b", "_", "-", ".", "~", "/", "é", "e\u{301}", "É", "ß", "ss", "K", "\u{212A}",
        "0",
    ]);
    prop::collection::vec(letter, 0..5).prop_map(|letters| letters.concat())
}

proptest! {
    #[test]
    fn different_ids_never_share_a_file_even_without_regard_to_case(
        a in prop_oneof![confusable(), "\\PC{0,80}", Just("a".repeat(64))],
        b in prop_oneof![confusable(), "\\PC{0,80}", Just("A".repeat(64))],
    ) {
        prop_assume!(a != b);
        prop_assert_ne!(given(&a).to_lowercase(), given(&b).to_lowercase());
    }

    #[test]
    fn every_name_is_plain_bounded_and_inside(id in any::<String>(), of_type in any::<String>()) {
        let mut job = test_job(&id);
        job.id_given = true;
        let file = Names::default().file(&job, Some(&of_type));
        prop_assert!(file.starts_with("bodies/") && file.is_ascii());
        for part in file.split('/') {
            prop_assert!((1..=255).contains(&part.len()) && !part.starts_with('.') && !is_device(part));
        }
    }
}
