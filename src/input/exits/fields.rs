//! The fields of an exit list's row, alike for text, CSV and JSONL.
//!
//! Owns what fields are called in each format; leaves what they mean to `candidates`.
//! Invariant: a field is given at most once, and none is passed over.

use serde_json::{Map, Value};

use super::super::Reason;

/// What a field says. Attributes are last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    Address,
    Scheme,
    Host,
    Port,
    Username,
    Password,
    Name,
    Tier,
    Region,
    Group,
    Cap,
    Sessions,
}

impl Field {
    const ALL: [Field; 12] = [
        Field::Address,
        Field::Scheme,
        Field::Host,
        Field::Port,
        Field::Username,
        Field::Password,
        Field::Name,
        Field::Tier,
        Field::Region,
        Field::Group,
        Field::Cap,
        Field::Sessions,
    ];

    /// As columns, members and attributes are named.
    pub fn as_str(self) -> &'static str {
        match self {
            Field::Address => "exit",
            Field::Scheme => "scheme",
            Field::Host => "host",
            Field::Port => "port",
            Field::Username => "username",
            Field::Password => "password",
            Field::Name => "name",
            Field::Tier => "tier",
            Field::Region => "region",
            Field::Group => "group",
            Field::Cap => "cap",
            Field::Sessions => "sessions",
        }
    }

    /// By its name in a text list, where the address comes first and without name.
    fn attribute(name: &str) -> Option<Field> {
        Field::ALL
            .into_iter()
            .skip(Field::Name as usize)
            .find(|field| field.as_str() == name)
    }

    /// By its name as column or member, in any case and by other names in use.
    fn named(name: &str) -> Option<Field> {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "proxy" | "url" | "address" => Some(Field::Address),
            "protocol" => Some(Field::Scheme),
            "ip" => Some(Field::Host),
            "user" => Some(Field::Username),
            "pass" => Some(Field::Password),
            name => Field::ALL.into_iter().find(|field| field.as_str() == name),
        }
    }
}

/// What each column of a CSV list is for. None for the other formats.
#[derive(Debug, Default)]
pub struct Columns(Vec<Field>);

impl Columns {
    /// Reads the header record.
    ///
    /// # Errors
    /// No address, or a column that is unknown or doubled. Names of columns are not
    /// repeated: in a list without header they would be the first exit's login.
    pub fn new(names: &[String]) -> Result<Columns, Reason> {
        let mut columns = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            match Field::named(name) {
                Some(field) if !columns.contains(&field) => columns.push(field),
                _ => {
                    return Err(format!(
                        "has an unknown or doubled column {}: known are exit (or scheme, host, port, \
                         username, password), name, tier, region, group, cap, sessions",
                        at + 1
                    )
                    .into());
                }
            }
        }
        if !columns.contains(&Field::Address) && !columns.contains(&Field::Host) {
            return Err("has neither a column exit nor a column host".into());
        }
        Ok(Columns(columns))
    }
}

/// The fields of one row, as written; absent and empty are one.
#[derive(Default)]
pub struct Fields([Option<String>; Field::ALL.len()]);

impl Fields {
    /// `ADDRESS [attribute=value]…`
    pub fn from_text(text: &str) -> Result<Fields, Reason> {
        let mut fields = Fields::default();
        let mut words = text.split_whitespace();
        fields.0[Field::Address as usize] = words.next().map(str::to_owned);
        for word in words {
            let (name, value) = word.split_once('=').ok_or(
                "has words after the address that are no attribute=value; comments need a line of their own",
            )?;
            let field = Field::attribute(name).ok_or_else(|| unknown(name))?;
            if value.is_empty() {
                return Err(format!("has no value for {name}").into());
            }
            fields.set(field, value.to_owned())?;
        }
        Ok(fields)
    }

    /// A CSV record.
    pub fn from_cells(cells: Vec<String>, columns: &Columns) -> Result<Fields, Reason> {
        if cells.len() > columns.0.len() {
            return Err(format!(
                "has {} cells where the header has {}",
                cells.len(),
                columns.0.len()
            )
            .into());
        }
        let mut fields = Fields::default();
        for (&field, cell) in columns.0.iter().zip(cells) {
            fields.set(field, cell)?;
        }
        Ok(fields)
    }

    /// A JSON object; `port`, `cap` and `sessions` may be numbers.
    pub fn from_object(members: Map<String, Value>) -> Result<Fields, Reason> {
        let mut fields = Fields::default();
        for (name, value) in members {
            let field = Field::named(&name).ok_or_else(|| unknown(&name))?;
            let value = match value {
                Value::Null => continue,
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                _ => return Err(format!("has a {name} that is neither string nor number").into()),
            };
            fields.set(field, value)?;
        }
        Ok(fields)
    }

    fn set(&mut self, field: Field, value: String) -> Result<(), Reason> {
        // A password alone may begin or end with a blank.
        let value = match field {
            Field::Password => value,
            _ => value.trim().to_owned(),
        };
        if value.is_empty() {
            return Ok(());
        }
        match self.0[field as usize].replace(value) {
            None => Ok(()),
            Some(_) => Err(format!("gives its {} twice", field.as_str()).into()),
        }
    }

    /// A field's text, outer blanks removed; `None` if absent or empty.
    pub fn get(&self, field: Field) -> Option<&str> {
        self.0[field as usize].as_deref()
    }
}

fn unknown(name: &str) -> Reason {
    // More than a word is no mistyped attribute and may be part of a login.
    let is_word = name.len() <= 20 && name.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_');
    match is_word {
        true => format!("has the unknown attribute {name}").into(),
        false => "has an unknown attribute".into(),
    }
}
