//! Lists: what to fetch ([`urls`]) and through what ([`exits`]).
//!
//! Owns every accepted form of both lists and the fate of each of their lines. Leaves
//! what is done with a refused line to the caller, and whether a given id was used before
//! to whoever remembers ids. Sends nothing, except to fetch a list that is given as URL.
//!
//! Invariants: every line (CSV: record) that counts has exactly one fate; a line that
//! cannot be used is refused alone; memory is bounded however long lines and lists are (the
//! exit list is kept, a URL list passes through); no message holds a login.
//!
//! ```text
//! source ─► bytes ─► lines ─► rows ─┬─► urls:  entries, streamed, on a thread of their own
//! (file, stdin,      (numbers) (table:│
//!  URL; gz, zst)               CSV)   └─► exits: read whole, duplicates and names settled
//! ```
//!
//! # Where a list comes from
//!
//! A path, `-` for standard input, or `http://…` / `https://…`, which is fetched directly
//! and honours the environment's proxy variables. gzip and Zstandard are decompressed,
//! recognised by their first bytes; a name in `.gz` or `.zst` must keep its promise. UTF-8
//! only: one byte-order mark at the start is dropped, UTF-16 refuses the whole list, another
//! encoding refuses the lines that are not UTF-8. CR before LF goes, the last line needs no
//! end, a line has at most 1 MiB.
//!
//! The format follows the name, looked at through `.gz` and `.zst`: `.csv` is CSV;
//! `.jsonl`, `.ndjson` and `.json` are one JSON object per line; all else is text.
//!
//! In text, outer blanks do not matter, and blank lines and lines that start with `#` do
//! not count. In CSV (RFC 4180, comma, header row needed) and JSONL, blank lines do not
//! count and there are no comments. A CSV cell may hold line ends inside quotes; the
//! record's line is the one it starts on. A quote that is never closed costs its line only.
//!
//! # URL list
//!
//! | field | CSV column | JSONL member |
//! | --- | --- | --- |
//! | URL | `url` | `url` |
//! | id | `id` | `id`: string or whole number |
//! | method | `method` | `method` |
//! | headers | `header:NAME`, one each | `headers`: object of strings or lists of strings |
//! | body | `body` | `body`, or `body_base64` |
//! | comes back in the record | any other column | any other member |
//!
//! CSV column names may be in any case; an empty cell is an absent field, and so is `null`.
//! The method is GET, or POST where there is a body. An id has 1 to 1024 bytes without control
//! characters; without one, it is made from method, URL and body. CONNECT is refused, and so
//! are headers of the connection (see [`headers`]).
//!
//! A URL is absolute, `http` or `https`, in any case; a missing scheme is refused, not
//! guessed. A blank, control character or backslash inside refuses it. The host becomes an
//! A-label (WHATWG URL, UTS #46) with labels of 1 to 63 letters, digits, `-` and `_`; the
//! port is 1 to 65535. A login becomes `Authorization: Basic` and is shown as `***`; the
//! fragment is not sent; percent-escapes stay as listed.
//!
//! # Exit list
//!
//! Text: an address, then attributes, apart by blanks.
//!
//! ```text
//! host:port                      scheme://host[:port]
//! user:pass@host:port            scheme://user:pass@host[:port]
//! host:port:user:pass            scheme://host:port:user:pass
//!
//! http://alice-{session}:${PASS}@gate.test:7000  name=gate tier=residential sessions=20 cap=2
//! ```
//!
//! - Schemes: `http` (where none is written), `https`, `socks5` and `socks5h` (alike: names
//!   are resolved at the exit). A default port is there only with a scheme: 80, 443, 1080.
//! - The host is a name, an IPv4 address or an IPv6 address in brackets, never digits alone.
//! - A login ends at the last `@`. Valid percent-escapes are decoded once, in every form, and
//!   everything else is taken as it stands, so that a raw `p:@ss/#%` works, too. The password
//!   may be missing with HTTP. SOCKS5 wants 1 to 255 bytes for both (RFC 1929); an HTTP
//!   user name has no colon (RFC 7617).
//! - `user:pass:host:port` and lines that read two ways are refused as ambiguous.
//! - Attributes: `name`, `tier`, `region`, `group` (up to 64 characters without blanks), `cap`
//!   and `sessions` (numbers from 1). Unknown ones refuse the line.
//! - `{session}` in the username with `sessions=N` makes N exits, numbered from 1; a `name`
//!   then gets `-1`, `-2`, ….
//! - `${VAR}` takes a value from the environment as it is, without decoding. It may stand in
//!   every part, for a whole login (`user:pass`) or for a whole address. Unset or empty
//!   refuses the line. A literal `${` is written `%24{`.
//!
//! CSV and JSONL have the same fields: `exit` (also `proxy`, `url`, `address`) in the forms
//! above, or `host` (`ip`), `port`, `scheme` (`protocol`); `username` (`user`) and
//! `password` (`pass`), which are not percent-decoded; and the attributes. Other columns
//! refuse the list, other members their line: a mistyped `cap` must not pass unnoticed.
//!
//! The same scheme, host, port and username are one exit, however spelled; the first listing
//! counts. Ids are `name=`, else `host:port`, else (shared by several) `host:port~` and hex
//! digits of a digest.

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
pub mod target;
pub mod urls;

pub use exits::{ExitList, RefusedExit};
pub use format::ListFormat;
pub use source::ListSource;
pub use urls::{Entry, Urls};

/// Why an entry cannot be used: one line that completes "line 7 …", without any secret.
pub type Reason = Cow<'static, str>;
