//! What a ladder is to climb: its levels, as far as the contract allows, and what its targets bear.

/// The contract's cap replaces a level that it is less than this much above.
const NEAR: f64 = 1.4;

/// What a ladder is for.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// Ascending, from 1, each above 0.
    pub levels: Vec<u32>,
    /// Different targets.
    pub targets: usize,
    /// Requests a second that the targets' budgets allow; `None`: unlimited.
    pub pace: Option<f64>,
}

/// `levels` as far as the contract allows; it is then the last one itself.
pub(super) fn within(levels: &[u32], cap: Option<u32>) -> Vec<u32> {
    let highest = levels.last().copied().unwrap_or(1);
    let Some(cap) = cap.filter(|cap| *cap < highest) else {
        return levels.to_vec();
    };
    let below = |level: &&u32| **level == 1 || f64::from(**level) * NEAR <= f64::from(cap);
    let mut kept: Vec<u32> = levels.iter().filter(below).copied().collect();
    if cap > 1 {
        kept.push(cap);
    }
    kept
}
