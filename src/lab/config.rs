//! What a lab is made of: its exits, how they are spoken to, how much they carry.

use std::sync::Arc;
use std::time::Duration;

use crate::model::{Scheme, Secret};

use super::behaviour::Behaviour;
use super::gauge::Gauge;

/// A whole lab.
#[derive(Clone, Debug)]
pub struct LabConfig {
    /// One proxy each; none is fine when only the origin's own listeners are wanted.
    pub exits: Vec<ExitConfig>,
    /// Control address here, origin http and https on the next two ports, exits after them.
    /// `None`: any free ports.
    pub base_port: Option<u16>,
    /// How many requests the lab remembers one by one ([`super::Lab::log`]); each costs
    /// some 200 bytes and a lock. 0 remembers none.
    pub log: usize,
    /// How many dispatch times are kept for each host of the origin; later ones are only
    /// counted.
    pub stamps: usize,
}

impl Default for LabConfig {
    fn default() -> LabConfig {
        LabConfig {
            exits: Vec::new(),
            base_port: None,
            log: 0,
            stamps: 4096,
        }
    }
}

impl LabConfig {
    /// `count` exits alike.
    pub fn alike(count: usize, exit: &ExitConfig) -> LabConfig {
        LabConfig::with((0..count).map(|_| exit.clone()))
    }

    /// These exits.
    pub fn with(exits: impl IntoIterator<Item = ExitConfig>) -> LabConfig {
        LabConfig {
            exits: exits.into_iter().collect(),
            ..LabConfig::default()
        }
    }

    /// Remembers up to `requests` requests one by one.
    pub fn logging(mut self, requests: usize) -> LabConfig {
        self.log = requests;
        self
    }
}

/// One exit of a lab.
#[derive(Clone, Debug)]
pub struct ExitConfig {
    /// `None`: `lab-1`, `lab-2`, … by its place in the list.
    pub name: Option<String>,
    /// How it is spoken to.
    pub scheme: Scheme,
    /// Who may use it.
    pub access: Access,
    /// How fast it is, and how many it serves at that speed.
    pub load: Load,
    /// What it shares with other exits.
    pub account: Option<Account>,
    /// How it behaves at first.
    pub behaviour: Behaviour,
    /// More attributes for its line in `exits.txt`, such as `tier=static cap=4`.
    pub attributes: String,
}

impl ExitConfig {
    /// A well-behaved exit of this kind that serves anybody at full speed.
    pub fn new(scheme: Scheme) -> ExitConfig {
        ExitConfig {
            name: None,
            scheme,
            access: Access::Open,
            load: Load::default(),
            account: None,
            behaviour: Behaviour::Good,
            attributes: String::new(),
        }
    }

    /// A HTTP proxy.
    pub fn http() -> ExitConfig {
        ExitConfig::new(Scheme::Http)
    }

    /// A HTTP proxy inside TLS, with a certificate of the lab's authority.
    pub fn https() -> ExitConfig {
        ExitConfig::new(Scheme::Https)
    }

    /// A SOCKS5 proxy.
    pub fn socks5() -> ExitConfig {
        ExitConfig::new(Scheme::Socks5)
    }

    /// Wants exactly this login.
    pub fn login(mut self, username: &str, password: &str) -> ExitConfig {
        self.access = Access::Login {
            username: username.to_owned(),
            password: Secret::new(password),
        };
        self
    }

    /// Wants a session login: any username that begins with `prefix`, and this password.
    pub fn gateway(mut self, prefix: &str, password: &str, sessions: u32) -> ExitConfig {
        self.access = Access::Gateway {
            prefix: prefix.to_owned(),
            password: Secret::new(password),
            sessions,
        };
        self
    }

    /// How many requests it serves at full speed; 0 is as many as come.
    pub fn capacity(mut self, requests: u32) -> ExitConfig {
        self.load.capacity = requests;
        self
    }

    /// Shares the capacity of this account with all exits that do.
    pub fn account(mut self, account: &Account) -> ExitConfig {
        self.account = Some(account.clone());
        self
    }

    /// How long it takes for a request when not overloaded.
    pub fn base(mut self, time: Duration) -> ExitConfig {
        self.load.base = time;
        self
    }

    /// Spreads each service time evenly over `1 ± share`.
    pub fn jitter(mut self, share: f64) -> ExitConfig {
        self.load.jitter = share;
        self
    }

    /// Behaves like this.
    pub fn behaving(mut self, behaviour: Behaviour) -> ExitConfig {
        self.behaviour = behaviour;
        self
    }

    /// Is called this.
    pub fn named(mut self, name: &str) -> ExitConfig {
        self.name = Some(name.to_owned());
        self
    }

    /// Has these attributes on its line of `exits.txt`.
    pub fn attributes(mut self, attributes: &str) -> ExitConfig {
        attributes.clone_into(&mut self.attributes);
        self
    }
}

/// Who may use an exit.
#[derive(Clone, Debug)]
pub enum Access {
    /// Anybody; a login that is sent all the same is taken and counted.
    Open,
    /// This login only.
    Login {
        /// As it comes on the wire.
        username: String,
        /// As it comes on the wire.
        password: Secret,
    },
    /// A provider's gateway: the username tells the session.
    Gateway {
        /// What every username begins with.
        prefix: String,
        /// The same for all.
        password: Secret,
        /// How many sessions the line in `exits.txt` makes.
        sessions: u32,
    },
}

/// A capacity that several exits share, as those of a provider's plan do: with more requests
/// in flight through all of them, all of them slow down. Clones are the same account.
#[derive(Clone, Debug)]
pub struct Account {
    capacity: u32,
    pub(super) in_flight: Arc<Gauge>,
}

impl Account {
    /// An account that serves so many requests at full speed; 0 is as many as come.
    pub fn of(capacity: u32) -> Account {
        Account {
            capacity,
            in_flight: Arc::default(),
        }
    }

    /// How long a request takes at an exit with this load, as far as the account has a say.
    pub(super) fn service(&self, load: &Load, origin: Duration, draw: u64) -> Duration {
        let own = Load {
            capacity: self.capacity,
            ..*load
        };
        own.service(origin, self.in_flight.now(), draw)
    }
}

/// The latency model: flat up to `capacity` requests in flight, then in proportion to load.
///
/// An overloaded exit slows everything that goes through it: what the origin takes is
/// stretched like what the exit itself takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Requests in flight that are served at full speed; 0 is as many as come.
    pub capacity: u32,
    /// What a request takes at full speed, besides the origin's own time.
    pub base: Duration,
    /// Each service time is spread evenly over `1 ± jitter`, from 0 (none) to 1.
    pub jitter: f64,
}

impl Load {
    /// How long a request takes that finds `in_flight` in flight, itself included, and whose
    /// origin takes `origin`. `draw` is any number; its bits decide the jitter.
    pub(super) fn service(&self, origin: Duration, in_flight: u32, draw: u64) -> Duration {
        let flat = self.base + origin;
        if flat.is_zero() {
            return flat;
        }
        let crowd = match self.capacity {
            0 => 1.0,
            capacity => (f64::from(in_flight) / f64::from(capacity)).max(1.0),
        };
        let spread = match self.jitter {
            share if share > 0.0 => 1.0 + share.min(1.0) * (2.0 * unit(draw) - 1.0),
            _ => 1.0,
        };
        flat.mul_f64(crowd * spread)
    }
}

/// A number in [0, 1) from the bits of `draw`, by the finalizer of splitmix64 (Steele, Lea,
/// Flood 2014): neighbours give unlike numbers.
fn unit(draw: u64) -> f64 {
    let mut z = draw.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn service_time_is_flat_up_to_the_capacity_and_then_grows_with_the_load() {
        let load = Load {
            capacity: 4,
            base: 20 * MS,
            jitter: 0.0,
        };
        for in_flight in 1..=4 {
            assert_eq!(load.service(Duration::ZERO, in_flight, 0), 20 * MS);
        }
        assert_eq!(load.service(Duration::ZERO, 8, 0), 40 * MS);
        assert_eq!(load.service(60 * MS, 12, 0), 240 * MS);
    }

    #[test]
    fn an_account_slows_all_its_exits_down_together() {
        let (account, load) = (Account::of(2), Load::default());
        let same = account.clone();
        let _inside = [(); 6].map(|()| account.in_flight.enter_owned());
        assert_eq!(same.service(&load, 20 * MS, 0), 60 * MS);
        assert_eq!(Account::of(2).service(&load, 20 * MS, 0), 20 * MS);
    }

    #[test]
    fn without_capacity_the_load_does_not_matter() {
        let load = Load::default();
        assert_eq!(load.service(5 * MS, 1000, 0), 5 * MS);
        assert_eq!(load.service(Duration::ZERO, 1000, 0), Duration::ZERO);
    }

    #[test]
    fn jitter_stays_within_its_share_and_averages_out() {
        let load = Load {
            capacity: 0,
            base: 100 * MS,
            jitter: 0.5,
        };
        let times: Vec<f64> = (0..1000)
            .map(|draw| load.service(Duration::ZERO, 1, draw).as_secs_f64())
            .collect();
        assert!(times.iter().all(|t| (0.05..=0.15).contains(t)));
        let mean = times.iter().sum::<f64>() / 1000.0;
        assert!((0.095..0.105).contains(&mean), "{mean}");
    }
}
