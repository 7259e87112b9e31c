//! Ids of exits: how outputs tell exits apart without showing a login.
//!
//! `name=`, else `host:port`, else (where several exits share that) `host:port~` and the
//! first hex digits of a SHA-256 over scheme, username, host and port. Six digits as a
//! rule; exits that agree in them get more. Invariant: ids are unique in a list and do not
//! depend on its order.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::model::Exit;
use crate::model::job::hex;

/// An exit that has no id yet.
pub struct Candidate {
    /// With an empty id.
    pub exit: Exit,
    /// From `name=`, unique in the list.
    pub name: Option<Box<str>>,
}

/// Digits to tell apart exits that share host and port, tried in turn. The last are the
/// whole digest.
const DIGITS: [usize; 3] = [6, 12, 64];

/// Gives each candidate its id. `taken` are the names given in the list.
pub fn named(candidates: Vec<Candidate>, taken: HashSet<Box<str>>) -> Vec<Exit> {
    let mut ids: Vec<Option<Arc<str>>> = candidates
        .iter()
        .map(|candidate| candidate.name.as_deref().map(Arc::from))
        .collect();
    settle(&mut ids, &taken, |at| place(&candidates[at].exit));
    for digits in DIGITS {
        settle(&mut ids, &taken, |at| {
            let exit = &candidates[at].exit;
            format!("{}~{}", place(exit), &fingerprint(exit)[..digits])
        });
    }
    candidates
        .into_iter()
        .zip(ids)
        .map(|(candidate, id)| Exit {
            // Identities differ and no name holds a `~`, so the whole digest was free.
            id: id.unwrap_or_else(|| Arc::from(place(&candidate.exit))),
            ..candidate.exit
        })
        .collect()
}

/// Gives the proposed id to all that have none and share the proposal with nobody.
fn settle(
    ids: &mut [Option<Arc<str>>],
    taken: &HashSet<Box<str>>,
    propose: impl Fn(usize) -> String,
) {
    if ids.iter().all(Option::is_some) {
        return;
    }
    // Exits that have an id count as sharers: `host:port` would name them, too.
    let mut sharers: HashMap<String, Vec<usize>> = HashMap::new();
    for at in 0..ids.len() {
        sharers.entry(propose(at)).or_default().push(at);
    }
    for (id, sharers) in sharers {
        if let [only] = sharers[..]
            && !taken.contains(id.as_str())
        {
            ids[only].get_or_insert_with(|| id.into());
        }
    }
}

fn place(exit: &Exit) -> String {
    match exit.host.contains(':') {
        true => format!("[{}]:{}", exit.host, exit.port),
        false => format!("{}:{}", exit.host, exit.port),
    }
}

fn fingerprint(exit: &Exit) -> String {
    let username = exit
        .login
        .as_ref()
        .map_or("", |login| login.username.expose());
    let port = exit.port.to_string();
    let mut digest = Sha256::new();
    // A zero byte ends each part, so that parts cannot run into each other.
    for part in [exit.scheme.as_str(), username, &exit.host, &port] {
        digest.update(part.as_bytes());
        digest.update([0]);
    }
    hex(&digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Login, Scheme, Secret};

    fn candidate(port: u16, user: &str, name: Option<&str>) -> Candidate {
        Candidate {
            exit: Exit {
                id: Arc::from(""),
                scheme: Scheme::Http,
                host: "::1".into(),
                port,
                login: (!user.is_empty()).then(|| Login {
                    username: Secret::new(user),
                    password: Secret::default(),
                }),
                tier: None,
                region: None,
                group: None,
                cap: None,
                line: 1,
            },
            name: name.map(Box::from),
        }
    }

    fn ids(candidates: Vec<Candidate>) -> Vec<String> {
        let taken = candidates.iter().filter_map(|c| c.name.clone()).collect();
        let exits = named(candidates, taken);
        exits.iter().map(|exit| exit.id.to_string()).collect()
    }

    #[test]
    fn host_and_port_name_an_exit_unless_several_share_them() {
        let ids = ids(vec![
            candidate(1, "", None),
            candidate(2, "a", None),
            candidate(2, "b", None),
            candidate(3, "a", Some("given")),
            candidate(3, "b", None),
        ]);
        assert_eq!(ids[0], "[::1]:1");
        assert!(
            ids[1].starts_with("[::1]:2~") && ids[1].len() == 14,
            "{ids:?}"
        );
        assert_ne!(ids[1], ids[2]);
        assert_eq!(ids[3], "given");
        assert!(ids[4].starts_with("[::1]:3~"));
    }

    #[test]
    fn ids_do_not_depend_on_the_order_of_the_list() {
        let forth = ids(vec![candidate(2, "a", None), candidate(2, "b", None)]);
        let mut back = ids(vec![candidate(2, "b", None), candidate(2, "a", None)]);
        back.reverse();
        assert_eq!(forth, back);
    }

    #[test]
    fn a_name_is_never_given_to_another_exit_as_well() {
        let ids = ids(vec![
            candidate(1, "", Some("[::1]:2")),
            candidate(2, "", None),
        ]);
        assert!(ids[1].starts_with("[::1]:2~"), "{ids:?}");
    }

    #[test]
    fn six_digits_that_meet_grow() {
        // So many sessions of one gateway that some must agree in six digits.
        let sessions = (0..20_000).map(|n| candidate(1, &format!("s-{n}"), None));
        let ids = ids(sessions.collect());
        let distinct: HashSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len());
        let long = ids.iter().filter(|id| id.len() == "[::1]:1~".len() + 12);
        let long = long.count();
        assert!(long > 0 && long % 2 == 0 && long < 200, "{long}");
    }
}
