//! What a probe asks for: the targets with what their sites allow.

use anyhow::{anyhow, bail};

use super::super::config::Config;
use super::super::connection::ConnectionArgs;
use super::args::ProbeArgs;
use crate::input::target;
use crate::model::Origin;
use crate::probe::Target;
use crate::schedule::budget::Allowance;

/// Requests per second to a target that is not the user's own.
const USUAL_RATE: f64 = 10.0;
/// Targets with their budgets, and how they are shown.
pub(super) fn targets(args: &ProbeArgs, config: &Config) -> anyhow::Result<Vec<(Target, String)>> {
    if args.target.is_empty() {
        bail!(
            "--target is missing\nhint: name a page that you may load some hundred times, such as a ping page of your own; `exitfetch lab` rehearses it without any site"
        );
    }
    let usual = match (args.rate, args.own_target) {
        (Some(rate), _) => rate.0,
        (None, true) => None,
        (None, false) => Some(USUAL_RATE),
    };
    let one = |text: &String| {
        let parsed = target::parse(text.trim());
        let parsed = parsed.map_err(|reason| anyhow!("--target: the URL {reason}"))?;
        let origin = Origin::of(&parsed.url);
        let own = config.origins.iter().find(|(site, _)| site.0 == origin);
        let own = own.map(|(_, config)| config);
        let allowance = Allowance {
            rate: own.and_then(|own| own.rate).map_or(usual, |rate| rate.0),
            burst: own.and_then(|own| own.burst).unwrap_or(1),
            per_origin: own.and_then(|own| own.per_origin),
        };
        let shown = parsed
            .listed
            .as_deref()
            .unwrap_or(parsed.url.as_str())
            .to_owned();
        let target = Target {
            url: parsed.url,
            authorization: parsed.authorization,
            allowance,
        };
        Ok((target, shown))
    };
    args.target.iter().map(one).collect()
}

/// Whether one connection can serve all targets: then levels do not differ in how often they
/// dial, and connections are kept.
pub(super) fn shares_connections(
    targets: &[(Target, String)],
    connection: &ConnectionArgs,
) -> bool {
    let forwarded =
        |(target, _): &(Target, String)| target.url.scheme() == "http" && !connection.tunnel;
    let place =
        |(target, _): &(Target, String)| (target.url.scheme().to_owned(), Origin::of(&target.url));
    let same = targets
        .windows(2)
        .all(|pair| place(&pair[0]) == place(&pair[1]));
    same || targets.iter().all(forwarded)
}
