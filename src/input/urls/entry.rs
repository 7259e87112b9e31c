//! Rows to entries: which column or member is which field.
//!
//! Owns the field names of CSV and JSONL; leaves what a field must be to `draft`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::HeaderName;
use serde_json::{Map, Value};

use super::Entry;
use super::draft::{Draft, Fault};
use crate::input::rows::Content;
use crate::input::{Reason, headers};

/// What each column of a CSV list is for. None for the other formats.
#[derive(Debug, Default)]
pub(super) struct Columns(Vec<Column>);

#[derive(Debug, PartialEq, Eq)]
enum Column {
    Url,
    Id,
    Method,
    Body,
    Header(HeaderName),
    /// Comes back in the record under this name.
    Extra(String),
}

impl Columns {
    /// Reads the header record. Known names may be written in any case.
    ///
    /// # Errors
    /// No `url`, a name twice, a `header:` that may not be set.
    pub fn new(names: &[String]) -> Result<Columns, Reason> {
        let columns: Vec<Column> = names
            .iter()
            .enumerate()
            .map(|(at, name)| column(name, at + 1))
            .collect::<Result<_, _>>()?;
        if !columns.contains(&Column::Url) {
            let hint = "hint: the first line names the columns; call the one with the URLs url";
            return Err(format!("has no column named url\n{hint}").into());
        }
        for (at, column) in columns.iter().enumerate() {
            // Headers may repeat, as they may on the wire.
            if !matches!(column, Column::Header(_)) && columns[..at].contains(column) {
                return Err(format!("names column {} like one before it", at + 1).into());
            }
        }
        Ok(Columns(columns))
    }
}

fn column(name: &str, number: usize) -> Result<Column, Reason> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "url" => Column::Url,
        "id" => Column::Id,
        "method" => Column::Method,
        "body" => Column::Body,
        "" => Column::Extra(format!("column {number}")),
        lower => match lower.strip_prefix("header:") {
            Some(header) => Column::Header(headers::name(header.trim())?),
            None => Column::Extra(name.to_owned()),
        },
    })
}

/// The entry that a row other than the header is.
pub(super) fn read(line: u64, content: Content, columns: &Columns) -> Entry {
    let mut draft = Draft {
        line,
        ..Draft::default()
    };
    let filled = match content {
        Content::Text(url) => {
            draft.url = url;
            Ok(())
        }
        Content::Cells(cells) => from_cells(&mut draft, cells, columns),
        Content::Object(members) => from_object(&mut draft, members),
        Content::Unreadable(reason) => Err(Fault::entry(reason)),
        Content::Header(_) => Err(Fault::entry("is a second header")),
    };
    match filled.and_then(|()| draft.job()) {
        Ok(job) => Entry::Job(job),
        Err(fault) => draft.refusal(fault),
    }
}

fn from_cells(draft: &mut Draft, cells: Vec<String>, columns: &Columns) -> Result<(), Fault> {
    let (given, expected) = (cells.len(), columns.0.len());
    let pairs = || columns.0.iter().zip(&cells);
    // A refusal for another cell shall name URL and id, and bring back what means nothing here.
    let mut id = Ok(());
    for (column, cell) in pairs() {
        match column {
            Column::Url => cell.trim().clone_into(&mut draft.url),
            Column::Id if !cell.trim().is_empty() => id = draft.set_id(cell.trim()),
            _ => {}
        }
    }
    if given > expected {
        return Err(Fault::entry(format!(
            "has {given} cells where the header has {expected}: quote a cell that holds a comma"
        )));
    }
    for (column, cell) in pairs() {
        if let Column::Extra(name) = column {
            draft.extra.insert(name.clone(), cell.as_str().into());
        }
    }
    id?;
    for (column, cell) in columns.0.iter().zip(cells) {
        match column {
            Column::Url | Column::Id | Column::Extra(_) => {}
            _ if cell.trim().is_empty() => {}
            Column::Method => draft.set_method(cell.trim())?,
            Column::Body => draft.body = Some(Bytes::from(cell)),
            Column::Header(name) => {
                let value = headers::value(name, &cell).map_err(Fault::entry)?;
                draft.headers.append(name.clone(), value);
            }
        }
    }
    Ok(())
}

fn from_object(draft: &mut Draft, mut members: Map<String, Value>) -> Result<(), Fault> {
    let mut take = |name: &str| members.remove(name).filter(|value| !value.is_null());
    let [url, id, method, headers] = ["url", "id", "method", "headers"].map(&mut take);
    let bodies = (take("body"), take("body_base64"));
    draft.extra = members;
    // A refusal for another member shall name URL and id.
    let url = url.map(|url| text("url", url)).transpose();
    if let Ok(Some(url)) = &url {
        url.trim().clone_into(&mut draft.url);
    }
    match id {
        // Numbering entries is common; a fraction as a name is a mistake.
        Some(Value::Number(id)) if !id.is_f64() => draft.set_id(&id.to_string())?,
        Some(id) => draft.set_id(&text("id", id)?)?,
        None => {}
    }
    url?;
    if let Some(method) = method {
        draft.set_method(text("method", method)?.trim())?;
    }
    if let Some(headers) = headers {
        set_headers(draft, headers)?;
    }
    draft.body = match bodies {
        (Some(_), Some(_)) => return Err(Fault::entry("has both body and body_base64")),
        (Some(body), None) => Some(Bytes::from(text("body", body)?)),
        (None, Some(body)) => Some(decoded(&text("body_base64", body)?)?),
        (None, None) => None,
    };
    Ok(())
}

fn text(member: &'static str, value: Value) -> Result<String, Fault> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Fault::entry(format!("has a {member} that is not a string"))),
    }
}

/// `{"Accept": "text/html", "X-Tag": ["a", "b"]}`
fn set_headers(draft: &mut Draft, listed: Value) -> Result<(), Fault> {
    let Value::Object(listed) = listed else {
        return Err(Fault::entry("has headers that are not an object"));
    };
    for (name, value) in listed {
        let name = headers::name(&name).map_err(Fault::entry)?;
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let Value::String(value) = value else {
                return Err(Fault::entry(format!(
                    "has a value that is not a string in the header {name}"
                )));
            };
            let value = headers::value(&name, &value).map_err(Fault::entry)?;
            draft.headers.append(name.clone(), value);
        }
    }
    Ok(())
}

fn decoded(base64: &str) -> Result<Bytes, Fault> {
    STANDARD
        .decode(base64)
        .map(Bytes::from)
        .map_err(|_| Fault::entry("has a body_base64 that is not valid Base64"))
}

#[cfg(test)]
mod tests;
