//! The sans-IO scheduler: which job starts next, through which exit, and what its end means.

pub mod blame;
pub mod breaker;
pub mod distinct;
pub mod fleet;
pub mod health;
pub mod last_hope;
pub mod pair;
pub mod panic_mode;
pub mod proxy_error;
pub mod retry;
pub mod split;
