//! `--name-template`: the user's own form of file names, below `bodies/`.
//!
//! Placeholders are `{id}`, `{host}`, `{line}`, `{ext}` (with its dot; a dot written right
//! before it is dropped) and `{hash}` (16 hex digits of the id's SHA-256); `/` makes a
//! directory. Files of different jobs must differ, so `~{hash}` is added to the file's stem
//! unless a whole component is exactly `{id}` or `{hash}`, with `{ext}` behind it or not.
//!
//! Everything is bounded when the template is read: a template whose longest possible name
//! passes the limits is refused, so no name is ever cut and none is found too long after a
//! transfer. Every placeholder gives plain ASCII, so nothing leads out of `bodies/`.

use std::str::FromStr;

use super::names::{EXT_MAX, HASH_LEN, ID_MAX, clean, id_hash, is_device, safe_id};
use crate::model::Job;

/// Longest component in bytes; file systems take 255.
const COMPONENT_MAX: usize = 255;
/// Longest path below `bodies/` in bytes; Linux takes 4096 with the output directory.
const PATH_MAX: usize = 1024;
/// How much of a host is used; enough for every name met in practice.
const HOST_MAX: usize = 100;
/// Digits of the largest line number.
const LINE_MAX: usize = 20;

/// A parsed name template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameTemplate {
    components: Vec<Vec<Part>>,
    /// Some component tells jobs apart by itself.
    unique: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Id,
    Host,
    Line,
    Ext,
    Hash,
}

impl FromStr for NameTemplate {
    type Err = String;

    fn from_str(text: &str) -> Result<NameTemplate, String> {
        let components = text
            .split('/')
            .map(parse_component)
            .collect::<Result<Vec<_>, _>>()?;
        let unique = components.iter().any(|parts| is_unique(parts));
        let template = NameTemplate { components, unique };
        template.check_lengths()?;
        Ok(template)
    }
}

fn parse_component(text: &str) -> Result<Vec<Part>, String> {
    if matches!(text, "" | "." | "..") {
        return Err(format!(
            "`{text}` cannot be part of a path: write names with a single `/` between them"
        ));
    }
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        let (name, after) = from
            .strip_prefix('{')
            .and_then(|from| from.split_once('}'))
            .ok_or_else(|| format!("`{text}` has a brace without its partner"))?;
        let part = placeholder(name)?;
        let before = match part {
            Part::Ext => before.strip_suffix('.').unwrap_or(before),
            _ => before,
        };
        push_text(&mut parts, before)?;
        parts.push(part);
        rest = after;
    }
    push_text(&mut parts, rest)?;
    Ok(parts)
}

fn placeholder(name: &str) -> Result<Part, String> {
    Ok(match name {
        "id" => Part::Id,
        "host" => Part::Host,
        "line" => Part::Line,
        "ext" => Part::Ext,
        "hash" => Part::Hash,
        _ => {
            return Err(format!(
                "no placeholder `{{{name}}}`: there are {{id}} {{host}} {{line}} {{ext}} {{hash}}"
            ));
        }
    })
}

fn push_text(parts: &mut Vec<Part>, text: &str) -> Result<(), String> {
    if let Some(bad) = text
        .chars()
        .find(|c| c.is_control() || r#"\:*?"<>|"#.contains(*c))
    {
        return Err(format!("{bad:?} cannot be part of a file name everywhere"));
    }
    if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
    Ok(())
}

fn is_unique(parts: &[Part]) -> bool {
    matches!(
        parts,
        [Part::Id | Part::Hash] | [Part::Id | Part::Hash, Part::Ext]
    )
}

impl Part {
    fn longest(&self) -> usize {
        match self {
            Part::Text(text) => text.len(),
            Part::Id => ID_MAX,
            Part::Host => HOST_MAX,
            Part::Line => LINE_MAX,
            Part::Ext => EXT_MAX,
            Part::Hash => HASH_LEN,
        }
    }
}

impl NameTemplate {
    fn check_lengths(&self) -> Result<(), String> {
        let lengths = self.components.iter().map(|parts| {
            // `~` and hash, and the `_` that keeps a name from being a device.
            parts.iter().map(Part::longest).sum::<usize>() + HASH_LEN + 2
        });
        if lengths.clone().any(|length| length > COMPONENT_MAX) {
            return Err(format!(
                "a name could pass {COMPONENT_MAX} bytes: use fewer placeholders or less text between two `/`"
            ));
        }
        if lengths.map(|length| length + 1).sum::<usize>() > PATH_MAX {
            return Err(format!(
                "a path could pass {PATH_MAX} bytes: use fewer levels"
            ));
        }
        Ok(())
    }

    /// The path of `job`'s body below `bodies/`. `ext` has its dot, or is empty.
    pub(super) fn render(&self, job: &Job, ext: &str) -> String {
        let last = self.components.len() - 1;
        let mut path = String::new();
        for (n, parts) in self.components.iter().enumerate() {
            let salt = (n == last && !self.unique).then(|| id_hash(&job.id));
            if n > 0 {
                path.push('/');
            }
            path.push_str(&component(parts, job, ext, salt.as_deref()));
        }
        path
    }
}

/// One component. `salt` goes before an extension at the end.
fn component(parts: &[Part], job: &Job, ext: &str, salt: Option<&str>) -> String {
    let (stem, tail) = match parts {
        [stem @ .., Part::Ext] => (stem, ext),
        all => (all, ""),
    };
    let mut name: String = stem.iter().map(|part| value(part, job, ext)).collect();
    if let Some(salt) = salt {
        name = format!("{name}~{salt}");
    }
    name.push_str(tail);
    // Windows drops dots and blanks at the end, and knows devices by name.
    name.truncate(name.trim_end_matches(['.', ' ']).len());
    if name.is_empty() || is_device(&name) {
        name.insert(0, '_');
    }
    name
}

fn value(part: &Part, job: &Job, ext: &str) -> String {
    match part {
        Part::Text(text) => text.clone(),
        Part::Id => safe_id(&job.id),
        Part::Host => clean(job.url.host_str().unwrap_or_default(), HOST_MAX, "."),
        Part::Line => job.line.to_string(),
        Part::Ext => ext.to_owned(),
        Part::Hash => id_hash(&job.id),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
