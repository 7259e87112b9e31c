//! Lists.

use std::borrow::Cow;

mod download;
pub mod exits;
pub mod format;
pub mod headers;
mod lines;
mod list;
mod mask;
mod rows;
pub mod source;
mod table;
mod target;
pub mod urls;

pub use exits::{ExitList, RefusedExit};
pub use format::ListFormat;
pub use source::ListSource;
pub use urls::{Entry, Urls};

/// Why an entry cannot be used: one line that completes "line 7 ...", without any secret.
pub type Reason = Cow<'static, str>;
