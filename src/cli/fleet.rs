//! From the exit list to what scheduler and sockets need: caps, groups, keep-alive.
//!
//! The cap's rule lives here: contract `cap=` bounds all; under it, an explicit `--per-exit`
//! wins over the tier's setting; without any of these, the contract itself, else the default.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::config::{GroupConfig, TierConfig};
use crate::fetch::ConnRule;
use crate::model::Exit;
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
}

/// What the settings file says of the fleet.
pub(super) struct FleetConfig<'a> {
    pub tiers: &'a BTreeMap<String, TierConfig>,
    pub groups: &'a BTreeMap<String, GroupConfig>,
}

impl Fleet {
    pub(super) fn new(exits: Vec<Exit>, per_exit: PerExit, config: &FleetConfig<'_>) -> Fleet {
        let groups: Vec<(String, u32)> = config
            .groups
            .iter()
            .map(|(name, group)| (name.clone(), group.cap))
            .collect();
        let group_of = |exit: &Exit| {
            let name = exit.group.as_deref()?;
            let at = groups.iter().position(|(known, _)| known == name)?;
            u32::try_from(at).ok()
        };
        let seats = exits.iter().map(|exit| Seat {
            id: Arc::clone(&exit.id),
            ceiling: ceiling(exit, per_exit, config.tiers),
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
        Fleet {
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
        let known = config.tiers.contains_key(tier) || TIERS.iter().any(|(name, _)| *name == tier);
        (!known).then(|| {
            format!("tier {tier} is not in the settings: its exits carry {carries} like any other")
        })
    };
    let group = |exit: &Exit| {
        let group = exit.group.as_deref()?;
        let known = config.groups.contains_key(group);
        (!known).then(|| {
            format!(
                "group={group} has no cap: write `cap = N` under [groups.{group}] into the settings file"
            )
        })
    };
    let all = exits.iter().flat_map(|exit| [tier(exit), group(exit)]);
    all.flatten().collect()
}

fn ceiling(exit: &Exit, per_exit: PerExit, tiers: &BTreeMap<String, TierConfig>) -> u32 {
    let of_tier = exit.tier.as_deref().and_then(|tier| {
        let configured = tiers.get(tier).and_then(|tier| tier.per_exit);
        let known = TIERS.iter().find(|(name, _)| *name == tier);
        configured.or(known.map(|(_, carries)| *carries))
    });
    let wanted = match per_exit {
        PerExit::Given(given) => given,
        PerExit::Default(default) => of_tier.or(exit.cap).unwrap_or(default),
    };
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
    use crate::model::Scheme;

    fn exit(tier: Option<&str>, cap: Option<u32>) -> Exit {
        Exit {
            id: "e".into(),
            scheme: Scheme::Http,
            host: "127.0.0.1".into(),
            port: 1,
            login: None,
            tier: tier.map(Into::into),
            region: None,
            group: Some("plan".into()),
            cap,
            line: 1,
        }
    }

    fn ceiling_of(tier: Option<&str>, cap: Option<u32>, per_exit: PerExit) -> u32 {
        let own = TierConfig {
            per_exit: Some(7),
            keep_alive: None,
        };
        ceiling(
            &exit(tier, cap),
            per_exit,
            &BTreeMap::from([("own".to_owned(), own)]),
        )
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
    fn groups_with_a_cap_are_seats_groups_and_others_are_none() {
        let tiers = BTreeMap::new();
        let groups = BTreeMap::from([("plan".to_owned(), GroupConfig { cap: 5 })]);
        let config = FleetConfig {
            tiers: &tiers,
            groups: &groups,
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
            unknown_names(exits, per_exit, &FleetConfig { tiers, groups }).len()
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
