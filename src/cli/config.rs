//! `exitfetch.toml`: the flags under `[run]`, and tables for tiers, groups and origins.
//!
//! Owns the tables and what may stand in them. The keys of `[run]` *are* the long flags and
//! are left as they are written: `layers` hands them to the parser of the command line.
//! Unknown keys are refused (`keys`).

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use http::HeaderMap;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use toml::de::DeTable;
use toml::{Spanned, Value};
use url::Url;

use super::keys;
use super::values::{Header, Rate};
use crate::model::Origin;

/// The file's tables, `[run]` left as key and value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The flags of `run`, by their place in the file.
    #[serde(default)]
    pub run: BTreeMap<Spanned<String>, Value>,
    /// `[tiers.NAME]`.
    #[serde(default)]
    pub tiers: BTreeMap<String, TierConfig>,
    /// `[groups.NAME]`.
    #[serde(default)]
    pub groups: BTreeMap<String, GroupConfig>,
    /// `[origins."host"]`.
    #[serde(default)]
    pub origins: BTreeMap<Site, OriginConfig>,
}

/// Defaults of a class of exits.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierConfig {
    /// Cap of each of its exits. Larger: more at once through one exit.
    #[serde(default, deserialize_with = "some_count")]
    pub per_exit: Option<u32>,
    /// `false`: no socket outlives its request (gateways that rotate per connection).
    pub keep_alive: Option<bool>,
}

/// Capacity that the exits of a group share.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// Requests in flight through all exits of the group together.
    #[serde(deserialize_with = "count")]
    pub cap: u32,
}

/// What one site is asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginConfig {
    /// As `--rate`; a number or text.
    #[serde(default, deserialize_with = "some_rate")]
    pub rate: Option<Rate>,
    /// As `--burst`.
    #[serde(default, deserialize_with = "some_count")]
    pub burst: Option<u32>,
    /// As `--per-origin`.
    #[serde(default, deserialize_with = "some_count")]
    pub per_origin: Option<u32>,
    /// Request headers for this site only.
    #[serde(default, deserialize_with = "headers")]
    pub headers: HeaderMap,
}

/// The site that a table is for, written `host` or `host:port` in any spelling.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site(pub Origin);

impl<'de> Deserialize<'de> for Site {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Site, D::Error> {
        let text = String::deserialize(from)?;
        // With the port written out, the site of https:// is meant as well: its default port is
        // dropped from an origin like that of http://.
        let scheme = if text.ends_with(":443") {
            "https"
        } else {
            "http"
        };
        let url = Url::parse(&format!("{scheme}://{text}/")).ok();
        let url = url.filter(|url| {
            url.path() == "/" && url.username().is_empty() && !text.contains(['*', '?', '#'])
        });
        let url = url.ok_or_else(|| {
            D::Error::custom(format!("`{text}` is no site: write a host, or host:port"))
        })?;
        Ok(Site(Origin::of(&url)))
    }
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        0 => Err(D::Error::custom("0 is too small: write 1 or more")),
        count => Ok(count),
    }
}

fn some_count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    count(from).map(Some)
}

fn some_rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let rate = match Value::deserialize(from)? {
        Value::String(text) => text.parse(),
        Value::Integer(number) => number.to_string().parse(),
        Value::Float(number) => number.to_string().parse(),
        _ => Err("a rate is a number or text, such as 0.2 or \"30/m\"".to_owned()),
    };
    rate.map(Some).map_err(D::Error::custom)
}

fn headers<'de, D: Deserializer<'de>>(from: D) -> Result<HeaderMap, D::Error> {
    let listed = BTreeMap::<String, String>::deserialize(from)?;
    let parsed = listed.iter().map(|(name, value)| {
        let header: Result<Header, String> = format!("{name}: {value}").parse();
        header.map(|Header(name, value)| (name, value))
    });
    parsed.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// Where settings come from, to name the place of a mistake.
#[derive(Debug)]
pub struct File {
    path: PathBuf,
    text: String,
}

impl File {
    /// A file that was read.
    pub fn new(path: impl Into<PathBuf>, text: impl Into<String>) -> File {
        File {
            path: path.into(),
            text: text.into(),
        }
    }

    /// `PATH:LINE` of a place in the file.
    pub fn place(&self, span: Range<usize>) -> String {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        format!("{self}:{line}")
    }

    /// Its tables. No message holds an excerpt: it may be a header's secret.
    pub fn read(&self) -> Result<Config> {
        let told = |error: toml::de::Error| {
            let place = match error.span() {
                Some(span) => self.place(span),
                None => self.to_string(),
            };
            anyhow!("{place}: {}", error.message().replace('\n', " "))
        };
        let table = DeTable::parse(&self.text).map_err(told)?;
        if let Some(unknown) = keys::unknown(table.get_ref()) {
            return Err(anyhow!("{}: {}", self.place(unknown.span), unknown.reason));
        }
        toml::from_str(&self.text).map_err(told)
    }

    /// `PATH:LINE` of a key, by the names that lead to it; the path alone if it is not there.
    pub fn place_of(&self, names: &[&str]) -> String {
        let table = DeTable::parse(&self.text).ok();
        let span = table.and_then(|table| keys::span_of(table.get_ref(), names));
        span.map_or_else(|| self.to_string(), |span| self.place(span))
    }

    /// What it holds, as it is written.
    pub fn table(&self) -> toml::Table {
        toml::from_str(&self.text).unwrap_or_default()
    }
}

impl std::fmt::Display for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.path.display().fmt(f)
    }
}

/// What the file holds that is `named`, else `exitfetch.toml` where there is one.
pub fn load(named: Option<&Path>) -> Result<(Config, Option<File>)> {
    const DEFAULT: &str = "exitfetch.toml";
    let path = match named {
        Some(path) => path,
        None if Path::new(DEFAULT).is_file() => Path::new(DEFAULT),
        None => return Ok((Config::default(), None)),
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{}: cannot be read", path.display()))?;
    let file = File::new(path, text);
    Ok((file.read()?, Some(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_known_in_any_spelling() {
        let sites = |name: &str| {
            let config: Result<Config, _> = toml::from_str(&format!("[origins.\"{name}\"]"));
            config.map(|config| config.origins.into_keys().next().unwrap().0.to_string())
        };
        assert_eq!(sites("A.test").unwrap(), "a.test");
        assert_eq!(sites("a.test:80").unwrap(), "a.test");
        assert_eq!(sites("a.test:8080").unwrap(), "a.test:8080");
        for name in ["", "a.test/x", "http://a.test", "a b", "u@a.test"] {
            assert!(sites(name).is_err(), "{name}");
        }
        assert_eq!(sites("shop.test:443").unwrap(), "shop.test");
        assert_eq!(sites("shop.test:80").unwrap(), "shop.test");
        for pattern in ["*.test", "shop.test?x", "shop.test#x"] {
            assert!(sites(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn rates_are_numbers_or_text() {
        let rate = |value: &str| {
            let text = format!("[origins.\"a.test\"]\nrate = {value}");
            let config: Result<Config, _> = toml::from_str(&text);
            config.map(|config| config.origins.into_values().next().unwrap().rate.unwrap().0)
        };
        assert_eq!(rate("5").unwrap(), Some(5.0));
        assert_eq!(rate("0.2").unwrap(), Some(0.2));
        assert_eq!(rate("'30/m'").unwrap(), Some(0.5));
        assert_eq!(rate("'unlimited'").unwrap(), None);
        assert!(rate("-1").is_err() && rate("true").is_err());
    }

    #[test]
    fn a_mistake_is_placed_and_not_quoted() {
        let text = "[run]\n\n[origins.'a.test'.headers]\nX-Key = \"s3cret\\u0001\"\n";
        let file = File::new("own.toml", text);
        let error = file.read().unwrap_err().to_string();
        assert!(error.starts_with("own.toml:"), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
