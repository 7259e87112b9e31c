//! Lists.

use std::borrow::Cow;

pub mod format;
mod lines;
mod rows;
mod table;

pub use format::ListFormat;

/// Why an entry cannot be used: one line that completes "line 7 ...", without any secret.
pub(crate) type Reason = Cow<'static, str>;
