//! How an exit behaves: data, and the pure rule what it does at each moment.
//!
//! How it is written is `words`'; what acts on it (sockets, counting turns) is `exit`'s.
//! Nothing here does I/O or reads a clock.

mod words;

use std::time::Duration;

/// What an exit does to those who use it. The word in brackets is how it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Behaviour {
    /// (`good`) Serves.
    #[default]
    Good,
    /// (`refuse`) Its port is closed: connection refused.
    Refuse,
    /// (`drop-syn`) Its accept queue is full: a dial gets no answer at all.
    DropSyn,
    /// (`reset`) Accepts and resets.
    Reset,
    /// (`close`) Accepts and closes without a byte.
    Close,
    /// (`hang`) Accepts and never says anything.
    Hang,
    /// (`hang-handshake`) Never answers CONNECT or a SOCKS greeting; plain requests are served.
    HangHandshake,
    /// (`close-handshake`) Closes on CONNECT or a SOCKS greeting; plain requests are served.
    CloseHandshake,
    /// (`mail`) Greets like a mail server and then keeps silent.
    Mail,
    /// (`STATUS`, `all:STATUS`) Answers everything with a page of its own. 407 says that the
    /// credentials are wrong, also to SOCKS clients.
    Everything(Page),
    /// (`page:STATUS`) Answers plain requests with a page of its own; tunnels work.
    Forward(Page),
    /// (`connect:STATUS`) Refuses tunnels with this status; plain requests are served.
    Connect(Page),
    /// (`socks:CODE`) Refuses SOCKS requests with this reply code.
    SocksReply(u8),
    /// (`limit:N:STATUS`, `limit:N:reset`) Serves up to N sockets at once.
    Limit {
        /// Sockets that are served.
        sockets: u32,
        /// What those above meet.
        over: Over,
    },
    /// (`intercept`) Ends TLS itself, with certificates of an authority nobody trusts.
    Intercept,
    /// (`cut`) Passes on half of each body and closes.
    Cut,
    /// (`garbage`) Answers with bytes that are neither HTTP nor SOCKS.
    Garbage,
    /// (`at:HOST:WORD`) Behaves like WORD in handshakes and plain requests for this host,
    /// whatever the port, and well towards others.
    Towards {
        /// A name, lower case, or an IPv4 address.
        host: String,
        /// How it behaves towards it.
        bad: Box<Behaviour>,
    },
    /// (`first:N:WORD`) Behaves like WORD the first N times, then well.
    First {
        /// How many times.
        times: u32,
        /// How it behaves until then.
        bad: Box<Behaviour>,
    },
    /// (`flap:G:B:WORD`) G times well, B times like WORD, and so on.
    Flap {
        /// Times well.
        good: u32,
        /// Times badly.
        bad_times: u32,
        /// How badly.
        bad: Box<Behaviour>,
    },
    /// (`swing:MS:MS:WORD`) So many milliseconds well, so many like WORD, and so on.
    Swing {
        /// Well for so long.
        good: Duration,
        /// Badly for so long.
        bad_time: Duration,
        /// How badly.
        bad: Box<Behaviour>,
    },
}

/// An answer that an exit makes up itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// 100 to 999.
    pub status: u16,
    /// One more header field, such as `Proxy-Status`, without the line's end.
    pub field: Option<String>,
}

impl Page {
    /// A bare page: nothing in it tells that it is the exit's.
    pub fn bare(status: u16) -> Page {
        Page {
            status,
            field: None,
        }
    }

    /// A page with the header line `field`.
    pub fn with(status: u16, field: &str) -> Page {
        Page {
            status,
            field: Some(field.to_owned()),
        }
    }
}

/// What a connection above [`Behaviour::Limit`] meets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// This answer to the first request, then the close. SOCKS clients are closed on.
    Page(Page),
    /// A reset.
    Reset,
}

/// When an exit is asked how to behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// A connection was accepted; so many are open with it.
    Accept { open: u32 },
    /// A plain request came.
    Forward,
    /// CONNECT or a SOCKS request came.
    Handshake,
    /// A request came through a tunnel.
    InTunnel,
}

/// What the exit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Serve,
    Reset,
    Close,
    Hang,
    Mail,
    Garbage,
    Page(Page),
    SocksReply(u8),
    Intercept,
    Cut,
}

impl Behaviour {
    /// What an exit with this behaviour does at `moment`. Behaviours that take turns or look
    /// at the host are resolved by their owner first and count as good here.
    pub(super) fn act(&self, moment: Moment) -> Act {
        match self {
            Behaviour::Good
            | Behaviour::Towards { .. }
            | Behaviour::First { .. }
            | Behaviour::Flap { .. }
            | Behaviour::Swing { .. } => Act::Serve,
            // Connections that were there before the port closed, and a port that cannot
            // close because the behaviour takes turns.
            Behaviour::Refuse | Behaviour::Reset => Act::Reset,
            Behaviour::Close => Act::Close,
            Behaviour::DropSyn | Behaviour::Hang => Act::Hang,
            Behaviour::Mail => Act::Mail,
            Behaviour::HangHandshake => at(moment == Moment::Handshake, Act::Hang),
            Behaviour::CloseHandshake => at(moment == Moment::Handshake, Act::Close),
            Behaviour::Everything(page) => at(is_asking(moment), Act::Page(page.clone())),
            Behaviour::Forward(page) => at(moment == Moment::Forward, Act::Page(page.clone())),
            Behaviour::Connect(page) => at(moment == Moment::Handshake, Act::Page(page.clone())),
            Behaviour::SocksReply(code) => at(moment == Moment::Handshake, Act::SocksReply(*code)),
            Behaviour::Garbage => at(is_asking(moment), Act::Garbage),
            Behaviour::Intercept => at(moment == Moment::Handshake, Act::Intercept),
            Behaviour::Cut => at(
                matches!(moment, Moment::Forward | Moment::InTunnel),
                Act::Cut,
            ),
            Behaviour::Limit { sockets, over } => match moment {
                Moment::Accept { open } if open > *sockets => match over {
                    Over::Page(page) => Act::Page(page.clone()),
                    Over::Reset => Act::Reset,
                },
                _ => Act::Serve,
            },
        }
    }

    /// What it does when asked for `target` (`host:port` or a host), beyond [`Behaviour::act`].
    pub(super) fn act_towards(&self, target: &str, moment: Moment) -> Act {
        let Behaviour::Towards { host, bad } = self else {
            return Act::Serve;
        };
        let name = target.rsplit_once(':').map_or(target, |(name, _)| name);
        if name.eq_ignore_ascii_case(host) {
            bad.act(moment)
        } else {
            Act::Serve
        }
    }

    /// Whether it shows when a connection is accepted, before anything is asked.
    pub(super) fn acts_at_accept(&self) -> bool {
        matches!(
            self,
            Behaviour::Refuse
                | Behaviour::DropSyn
                | Behaviour::Reset
                | Behaviour::Close
                | Behaviour::Hang
                | Behaviour::Mail
                | Behaviour::Limit { .. }
        )
    }
}

fn at(applies: bool, act: Act) -> Act {
    if applies { act } else { Act::Serve }
}

fn is_asking(moment: Moment) -> bool {
    matches!(moment, Moment::Forward | Moment::Handshake)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_for_plain_requests_leaves_tunnels_alone() {
        let page = Behaviour::Forward(Page::bare(502));
        assert_eq!(page.act(Moment::Forward), Act::Page(Page::bare(502)));
        assert_eq!(page.act(Moment::Handshake), Act::Serve);
        assert_eq!(page.act(Moment::InTunnel), Act::Serve);
        assert_eq!(page.act(Moment::Accept { open: 9 }), Act::Serve);
    }

    #[test]
    fn a_grudge_against_one_host_leaves_the_others_alone() {
        let grudge: Behaviour = "at:A.test:connect:403".parse().unwrap();
        let act = |target| grudge.act_towards(target, Moment::Handshake);
        assert_eq!(act("a.test:443"), Act::Page(Page::bare(403)));
        assert_eq!(act("b.test:443"), Act::Serve);
        assert_eq!(grudge.act_towards("a.test", Moment::Forward), Act::Serve);
        assert_eq!(grudge.act(Moment::Handshake), Act::Serve);
    }

    #[test]
    fn a_limit_turns_away_what_is_above_it_and_nothing_else() {
        let limit: Behaviour = "limit:3:reset".parse().unwrap();
        assert_eq!(limit.act(Moment::Accept { open: 3 }), Act::Serve);
        assert_eq!(limit.act(Moment::Accept { open: 4 }), Act::Reset);
        assert_eq!(limit.act(Moment::Forward), Act::Serve);
    }
}
