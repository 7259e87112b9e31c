//! From the exit list to what scheduler and sockets need: caps, groups, keep-alive.
//!
//! The cap's rule lives here: contract `cap=` bounds all; under it, an explicit `--per-exit`
//! wins over what the settings file says of the tier, that over what a probe found, and that
//! over what the tier's name stands for; without any of these, the contract itself, else the
//! default. A group's cap is the settings file's, else the probe's.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::config::{GroupConfig, TierConfig};
use super::probed::Probed;
use crate::fetch::ConnRule;
use crate::model::Exit;
use crate::report::ProbedCaps;
use crate::schedule::{Seat, slots};

/// What a tier carries where nobody says otherwise: rented lines carry least, own servers most.
pub(super) const TIERS: [(&str, u32); 3] = [("residential", 3), ("static", 5), ("datacenter", 32)];

/// `--per-exit` as it was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PerExit {
    /// Given: wins over tiers.
    Given(u32),
    /// The default: for exits about which nothing else is known.
    Default(u32),
}

/// The fleet, ready for scheduler and sockets.
#[derive(Debug)]
pub(super) struct Fleet {
    pub exits: Arc<[Exit]>,
    pub seats: Vec<Seat>,
    pub conns: Vec<ConnRule>,
    /// Name and cap of the groups that have one.
    pub groups: Vec<(String, u32)>,
    /// Which of these caps came from a probe.
    pub probed: Option<ProbedCaps>,
}

/// What the settings file and probes say of the fleet.
pub(super) struct FleetConfig<'a> {
    pub tiers: &'a BTreeMap<String, TierConfig>,
    pub groups: &'a BTreeMap<String, GroupConfig>,
    pub probed: &'a Probed,
}

impl Fleet {
    pub(super) fn new(exits: Vec<Exit>, per_exit: PerExit, config: &FleetConfig<'_>) -> Fleet {
        let groups = groups(&exits, config);
        let group_of = |exit: &Exit| {
            let name = exit.group.as_deref()?;
            let at = groups.iter().position(|(known, _)| known == name)?;
            u32::try_from(at).ok()
        };
        let seats = exits.iter().map(|exit| Seat {
            id: Arc::clone(&exit.id),
            ceiling: ceiling(exit, per_exit, config),
            group: group_of(exit),
            credentials: credentials(exit),
        });
        let seats: Vec<Seat> = seats.collect();
        let conns = exits.iter().zip(&seats).map(|(exit, seat)| ConnRule {
            ceiling: seat.ceiling,
            keep_alive: exit
                .tier
                .as_deref()
                .and_then(|tier| config.tiers.get(tier)?.keep_alive)
                .unwrap_or(true),
        });
        let decides = |exit: &Exit| {
            let (carries, source) = per_exit_of(exit, per_exit, config);
            source == Source::Probe && exit.cap.is_none_or(|cap| cap >= carries)
        };
        let of_probe = groups.iter().map(|(name, _)| name);
        let of_probe: Vec<String> = of_probe
            .filter(|name| !config.groups.contains_key(*name))
            .cloned()
            .collect();
        let probed = config.probed.used(&exits, decides, &of_probe);
        Fleet {
            probed,
            conns: conns.collect(),
            exits: exits.into(),
            seats,
            groups,
        }
    }

    /// Requests that all exits together may carry at a time, the groups' caps kept.
    pub(super) fn slots(&self) -> u64 {
        let caps: Vec<u32> = self.groups.iter().map(|(_, cap)| *cap).collect();
        slots(&self.seats, &caps)
    }
}

/// Tiers and groups that the exit list names and nothing else knows, one line each: likely
/// misspelt, and without effect. A tier that decides nothing is left alone as a mere label.
pub(super) fn unknown_names(
    exits: &[Exit],
    per_exit: PerExit,
    config: &FleetConfig<'_>,
) -> BTreeSet<String> {
    let tier = |exit: &Exit| {
        let (PerExit::Default(carries), None) = (per_exit, exit.cap) else {
            return None;
        };
        let tier = exit.tier.as_deref()?;
        let known = config.tiers.contains_key(tier)
            || config.probed.per_exit(exit).is_some()
            || TIERS.iter().any(|(name, _)| *name == tier);
        (!known).then(|| {
            format!("tier {tier} is not in the settings: its exits carry {carries} like any other")
        })
    };
    let group = |exit: &Exit| {
        let group = exit.group.as_deref()?;
        let known = config.groups.contains_key(group) || config.probed.knows_group(group);
        (!known).then(|| {
            format!(
                "group={group} has no cap: write `cap = N` under [groups.{group}] into the settings file"
            )
        })
    };
    let all = exits.iter().flat_map(|exit| [tier(exit), group(exit)]);
    all.flatten().collect()
}

/// Groups with a cap: the settings file's, and those of a probe that it leaves open.
fn groups(exits: &[Exit], config: &FleetConfig<'_>) -> Vec<(String, u32)> {
    let is_named = |name: &str| exits.iter().any(|exit| exit.group.as_deref() == Some(name));
    let configured = config.groups.iter();
    let configured = configured.map(|(name, group)| (name.clone(), group.cap));
    let probed = config.probed.groups();
    let probed = probed.filter(|(name, _)| !config.groups.contains_key(*name) && is_named(name));
    configured
        .chain(probed.map(|(name, cap)| (name.to_owned(), cap)))
        .collect()
}

/// Where the number for an exit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The user wrote it, for the run or for the tier.
    User,
    Probe,
    /// What a tier's name stands for, the contract, or the default.
    Usual,
}

fn per_exit_of(exit: &Exit, per_exit: PerExit, config: &FleetConfig<'_>) -> (u32, Source) {
    let default = match per_exit {
        PerExit::Given(given) => return (given, Source::User),
        PerExit::Default(default) => default,
    };
    let tier = exit.tier.as_deref();
    let configured = tier.and_then(|tier| config.tiers.get(tier)?.per_exit);
    if let Some(configured) = configured {
        return (configured, Source::User);
    }
    if let Some(probed) = config.probed.per_exit(exit) {
        return (probed, Source::Probe);
    }
    let known = tier.and_then(|tier| TIERS.iter().find(|(name, _)| *name == tier));
    let usual = known.map(|(_, carries)| *carries).or(exit.cap);
    (usual.unwrap_or(default), Source::Usual)
}

fn ceiling(exit: &Exit, per_exit: PerExit, config: &FleetConfig<'_>) -> u32 {
    let (wanted, _) = per_exit_of(exit, per_exit, config);
    wanted.min(exit.cap.unwrap_or(u32::MAX)).max(1)
}

/// Exits with the same login share what is learned about it.
fn credentials(exit: &Exit) -> Option<u64> {
    let login = exit.login.as_ref()?;
    let mut hasher = DefaultHasher::new();
    (&exit.host, exit.port, login).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::ListSource;
    use crate::model::Scheme;
    use crate::probe::{ProbeFile, TierEntry};

    fn exit(tier: Option<&str>, cap: Option<u32>) -> Exit {
        Exit {
            tier: tier.map(Into::into),
            group: Some("plan".into()),
            cap,
            ..Exit::new("e", Scheme::Http, "127.0.0.1", 1)
        }
    }

    fn ceiling_of(tier: Option<&str>, cap: Option<u32>, per_exit: PerExit) -> u32 {
        let own = TierConfig {
            per_exit: Some(7),
            keep_alive: None,
        };
        let config = FleetConfig {
            tiers: &BTreeMap::from([("own".to_owned(), own)]),
            groups: &BTreeMap::new(),
            probed: &Probed::default(),
        };
        ceiling(&exit(tier, cap), per_exit, &config)
    }

    #[test]
    fn the_contract_bounds_all_and_a_given_flag_beats_the_tier() {
        let default = PerExit::Default(3);
        assert_eq!(ceiling_of(None, None, default), 3);
        assert_eq!(ceiling_of(None, Some(10), default), 10);
        assert_eq!(ceiling_of(Some("datacenter"), None, default), 32);
        assert_eq!(ceiling_of(Some("datacenter"), Some(10), default), 10);
        assert_eq!(ceiling_of(Some("own"), None, default), 7);
        assert_eq!(ceiling_of(Some("unheard-of"), None, default), 3);
        assert_eq!(ceiling_of(Some("own"), None, PerExit::Given(2)), 2);
        assert_eq!(ceiling_of(Some("own"), Some(4), PerExit::Given(9)), 4);
    }

    #[test]
    fn a_probe_stands_above_the_name_of_a_tier_and_under_what_the_user_wrote() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("exits.txt");
        let mut file = ProbeFile::default();
        for tier in ["static", "own"] {
            file.put_tier(TierEntry {
                tier: Some(tier.to_owned()),
                region: None,
                per_exit: 6,
                knee: None,
                reason: None,
                verdict: String::new(),
                date: "1970-01-01T00:00:00Z".to_owned(),
                targets: Vec::new(),
                exits: Vec::new(),
                levels: Vec::new(),
            });
        }
        file.write(&ProbeFile::beside(&list)).unwrap();
        let day = std::time::Duration::from_secs(24 * 3600);
        let probed = Probed::beside(&ListSource::File(list), 31 * day);
        let own = TierConfig {
            per_exit: Some(7),
            keep_alive: None,
        };
        let config = FleetConfig {
            tiers: &BTreeMap::from([("own".to_owned(), own)]),
            groups: &BTreeMap::new(),
            probed: &probed,
        };
        let default = PerExit::Default(3);
        let of = |tier, cap, per_exit| ceiling(&exit(Some(tier), cap), per_exit, &config);
        assert_eq!(of("static", None, default), 6);
        assert_eq!(of("static", Some(4), default), 4);
        assert_eq!(of("static", None, PerExit::Given(9)), 9);
        assert_eq!(of("own", None, default), 7);
        assert_eq!(of("datacenter", None, default), 32);
        let used = |tier, cap| Fleet::new(vec![exit(Some(tier), cap)], default, &config).probed;
        let caps = used("static", None).unwrap();
        assert_eq!((caps.age_days, caps.caps["static"]), (31, 6));
        assert_eq!(used("static", Some(4)), None);
        assert_eq!(used("own", None), None);
    }

    #[test]
    fn groups_with_a_cap_are_seats_groups_and_others_are_none() {
        let tiers = BTreeMap::new();
        let groups = BTreeMap::from([("plan".to_owned(), GroupConfig { cap: 5 })]);
        let config = FleetConfig {
            tiers: &tiers,
            groups: &groups,
            probed: &Probed::default(),
        };
        let mut other = exit(None, None);
        other.group = Some("nobody".into());
        let fleet = Fleet::new(vec![exit(None, None), other], PerExit::Default(3), &config);
        assert_eq!(fleet.seats[0].group, Some(0));
        assert_eq!(fleet.seats[1].group, None);
        assert_eq!(fleet.groups, [("plan".to_owned(), 5)]);
        assert_eq!(fleet.slots(), 6);
    }

    #[test]
    fn names_that_nothing_knows_are_told_once_and_only_where_they_were_to_decide() {
        let plan = BTreeMap::from([("plan".to_owned(), GroupConfig { cap: 2 })]);
        let of = |exits: &[Exit], per_exit, groups: &BTreeMap<String, GroupConfig>| {
            let tiers = BTreeMap::new();
            let tiers = &tiers;
            let config = FleetConfig {
                tiers,
                groups,
                probed: &Probed::default(),
            };
            unknown_names(exits, per_exit, &config).len()
        };
        let default = PerExit::Default(3);
        let typo = [
            exit(Some("residental"), None),
            exit(Some("residental"), None),
        ];
        assert_eq!(of(&typo, default, &plan), 1);
        let no_groups = BTreeMap::new();
        assert_eq!(of(&typo, default, &no_groups), 2);
        assert_eq!(of(&typo, PerExit::Given(2), &plan), 0);
        assert_eq!(of(&[exit(Some("gold"), Some(2))], default, &plan), 0);
        assert_eq!(of(&[exit(Some("static"), None)], default, &plan), 0);
    }
}
