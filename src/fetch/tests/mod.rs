//! Attempts against scripted peers, by the phase they are about.

mod body;
mod head;
mod hostile;
mod reach;
mod reuse;
mod secure;
mod sending;
mod tunnel;
