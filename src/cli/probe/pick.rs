//! Which exits stand for the others, and which of their results counts. Pure.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::model::Exit;
use crate::probe::{Found, Verdict};

/// How many exits are probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sample {
    /// So many of each tier, region and group.
    Each(u32),
    /// Every one.
    All,
}

/// Exits of one tier and region that are probed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Class {
    pub tier: Option<String>,
    pub region: Option<String>,
    /// Indices into the list.
    pub exits: Vec<usize>,
}

fn text(part: &Option<std::sync::Arc<str>>) -> Option<String> {
    part.as_deref().map(str::to_owned)
}

/// The exits to probe, by tier and region, in the order of the list. Of a tier, region and
/// group those that the contract binds least come first: they can show most.
pub(super) fn classes(exits: &[Exit], sample: Sample) -> Vec<Class> {
    let mut order: Vec<usize> = (0..exits.len()).collect();
    order.sort_by_key(|at| Reverse(exits[*at].cap.unwrap_or(u32::MAX)));
    let mut taken: BTreeMap<_, u32> = BTreeMap::new();
    let mut kept: Vec<usize> = order
        .into_iter()
        .filter(|at| {
            let exit = &exits[*at];
            let count = taken
                .entry((&exit.tier, &exit.region, &exit.group))
                .or_default();
            *count += 1;
            match sample {
                Sample::Each(most) => *count <= most,
                Sample::All => true,
            }
        })
        .collect();
    kept.sort_unstable();
    let mut classes: Vec<Class> = Vec::new();
    for at in kept {
        let (tier, region) = (text(&exits[at].tier), text(&exits[at].region));
        let same = |class: &&mut Class| class.tier == tier && class.region == region;
        match classes.iter_mut().find(same) {
            Some(class) => class.exits.push(at),
            None => classes.push(Class {
                tier,
                region,
                exits: vec![at],
            }),
        }
    }
    classes
}

/// Groups with at least two exits, and the first of each, at most so many.
pub(super) fn groups(exits: &[Exit], most: usize) -> Vec<(String, Vec<usize>)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (at, exit) in exits.iter().enumerate() {
        let Some(name) = text(&exit.group) else {
            continue;
        };
        match groups.iter_mut().find(|(known, _)| *known == name) {
            Some((_, members)) if members.len() < most => members.push(at),
            Some(_) => {}
            None => groups.push((name, vec![at])),
        }
    }
    groups.retain(|(_, members)| members.len() > 1);
    groups
}

/// Which result counts, and what it says an exit carries: the 25th percentile. Exits that
/// only their contract stopped below `highest` say that they carry at least that; they count
/// where nothing else was found.
pub(super) fn counts(found: &[(usize, Found)], highest: u32) -> Option<(usize, u32)> {
    let results = found.iter().enumerate();
    let results = results.filter_map(|(n, (_, found))| Some((n, found.carries()?, found)));
    let (mut open, mut stopped): (Vec<_>, Vec<_>) = results.partition(|(_, carries, found)| {
        matches!(found.verdict, Verdict::Knee { .. }) || *carries >= highest
    });
    open.sort_by_key(|(_, carries, _)| *carries);
    stopped.sort_by_key(|(_, carries, _)| *carries);
    let quarter = open.get(open.len().saturating_sub(1) / 4);
    quarter
        .or(stopped.last())
        .map(|(n, carries, _)| (*n, *carries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Scheme;
    use crate::probe::{Obstacle, Reason};

    fn exit(tier: &str, group: Option<&str>, cap: Option<u32>) -> Exit {
        Exit {
            tier: Some(tier.into()),
            group: group.map(Into::into),
            cap,
            ..Exit::new("e", Scheme::Http, "127.0.0.1", 1)
        }
    }

    fn found(verdict: Verdict) -> (usize, Found) {
        let found = Found {
            verdict,
            rows: Vec::new(),
            last_error: None,
            pace: None,
        };
        (0, found)
    }

    fn knee(carries: u32) -> (usize, Found) {
        found(Verdict::Knee {
            carries,
            knee: carries + 1,
            reason: Reason::Plateau,
        })
    }

    #[test]
    fn one_exit_of_each_tier_region_and_group_stands_for_the_others() {
        let exits = [
            exit("a", None, Some(2)),
            exit("a", None, None),
            exit("a", Some("g"), None),
            exit("b", None, None),
            exit("b", None, None),
        ];
        let picked = |sample| {
            let classes = classes(&exits, sample);
            classes.into_iter().map(|c| c.exits).collect::<Vec<_>>()
        };
        assert_eq!(picked(Sample::Each(1)), [vec![1, 2], vec![3]]);
        assert_eq!(picked(Sample::Each(2)), [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(picked(Sample::All), [vec![0, 1, 2], vec![3, 4]]);
    }

    #[test]
    fn groups_of_one_have_nothing_to_share() {
        let mut exits = vec![exit("a", Some("alone"), None), exit("a", None, None)];
        exits.extend((0..7).map(|_| exit("a", Some("many"), None)));
        let found = groups(&exits, 5);
        assert_eq!(found, [("many".to_owned(), vec![2, 3, 4, 5, 6])]);
    }

    #[test]
    fn the_lower_quarter_counts_and_a_contract_tells_only_where_nothing_else_does() {
        let seven: Vec<_> = [9, 3, 5, 7, 4, 8, 6].into_iter().map(knee).collect();
        assert_eq!(counts(&seven, 16), Some((4, 4)));
        assert_eq!(counts(&[knee(6), knee(5)], 16), Some((1, 5)));
        let stopped = found(Verdict::NoKnee { carries: 2 });
        let open = found(Verdict::NoKnee { carries: 16 });
        assert_eq!(counts(&[stopped.clone(), knee(6)], 16), Some((1, 6)));
        assert_eq!(counts(&[stopped.clone(), open], 16), Some((1, 16)));
        let none = found(Verdict::None(Obstacle::Exit));
        assert_eq!(counts(&[none.clone(), stopped], 16), Some((1, 2)));
        assert_eq!(counts(&[none], 16), None);
    }
}
