//! Behaviours as short words (`refuse`, `502`, `first:6:502`, …), so that a running lab can be
//! changed from a command line or over its control address.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Behaviour, Over, Page};

impl FromStr for Behaviour {
    type Err = String;

    fn from_str(word: &str) -> Result<Behaviour, String> {
        let (name, rest) = word.split_once(':').unwrap_or((word, ""));
        Ok(match name {
            "good" => Behaviour::Good,
            "refuse" => Behaviour::Refuse,
            "drop-syn" => Behaviour::DropSyn,
            "reset" => Behaviour::Reset,
            "close" => Behaviour::Close,
            "hang" => Behaviour::Hang,
            "hang-handshake" => Behaviour::HangHandshake,
            "close-handshake" => Behaviour::CloseHandshake,
            "mail" => Behaviour::Mail,
            "intercept" => Behaviour::Intercept,
            "cut" => Behaviour::Cut,
            "garbage" => Behaviour::Garbage,
            "all" => Behaviour::Everything(page(rest)?),
            "page" => Behaviour::Forward(page(rest)?),
            "connect" => Behaviour::Connect(page(rest)?),
            "socks" => Behaviour::SocksReply(number(rest)?),
            "limit" => {
                let (sockets, over) = split(rest)?;
                Behaviour::Limit {
                    sockets: number(sockets)?,
                    over: match over {
                        "reset" => Over::Reset,
                        status => Over::Page(page(status)?),
                    },
                }
            }
            "at" => {
                let (host, word) = split(rest)?;
                Behaviour::Towards {
                    host: host.to_ascii_lowercase(),
                    bad: bad(word)?,
                }
            }
            "first" | "flap" | "swing" => turns(name, rest)?,
            status => Behaviour::Everything(page(status).map_err(|_| unknown(word))?),
        })
    }
}

fn turns(name: &str, rest: &str) -> Result<Behaviour, String> {
    let (first, rest) = split(rest)?;
    if name == "first" {
        return Ok(Behaviour::First {
            times: number(first)?,
            bad: bad(rest)?,
        });
    }
    let (second, rest) = split(rest)?;
    if name == "flap" {
        return Ok(Behaviour::Flap {
            good: number(first)?,
            bad_times: number(second)?,
            bad: bad(rest)?,
        });
    }
    Ok(Behaviour::Swing {
        good: Duration::from_millis(number(first)?),
        bad_time: Duration::from_millis(number(second)?),
        bad: bad(rest)?,
    })
}

/// What is done in the bad case; a case inside a case has no meaning.
fn bad(word: &str) -> Result<Box<Behaviour>, String> {
    match word.parse()? {
        Behaviour::First { .. }
        | Behaviour::Flap { .. }
        | Behaviour::Swing { .. }
        | Behaviour::Towards { .. } => Err(format!(
            "`{word}` is bad in some cases only: write one that always is"
        )),
        behaviour => Ok(Box::new(behaviour)),
    }
}

fn split(rest: &str) -> Result<(&str, &str), String> {
    rest.split_once(':')
        .ok_or_else(|| format!("`{rest}` ends early: write at:HOST:WORD, first:N:WORD, flap:N:N:WORD, swing:MS:MS:WORD or limit:N:STATUS"))
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is no number that fits here"))
}

fn page(text: &str) -> Result<Page, String> {
    match text.parse() {
        Ok(status @ 100..=999) => Ok(Page::bare(status)),
        _ => Err(format!("`{text}` is no status: write 100 to 999")),
    }
}

fn unknown(word: &str) -> String {
    format!(
        "`{word}` is no behaviour: write good, refuse, drop-syn, reset, close, hang, hang-handshake, \
         close-handshake, mail, garbage, intercept, cut, a status such as 502 or 407, page:STATUS, \
         connect:STATUS, socks:CODE, limit:N:STATUS, limit:N:reset, at:HOST:WORD, first:N:WORD, flap:N:N:WORD or \
         swing:MS:MS:WORD"
    )
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Behaviour::Good => f.write_str("good"),
            Behaviour::Refuse => f.write_str("refuse"),
            Behaviour::DropSyn => f.write_str("drop-syn"),
            Behaviour::Reset => f.write_str("reset"),
            Behaviour::Close => f.write_str("close"),
            Behaviour::Hang => f.write_str("hang"),
            Behaviour::HangHandshake => f.write_str("hang-handshake"),
            Behaviour::CloseHandshake => f.write_str("close-handshake"),
            Behaviour::Mail => f.write_str("mail"),
            Behaviour::Intercept => f.write_str("intercept"),
            Behaviour::Cut => f.write_str("cut"),
            Behaviour::Garbage => f.write_str("garbage"),
            Behaviour::Everything(page) => write!(f, "all:{}", page.status),
            Behaviour::Forward(page) => write!(f, "page:{}", page.status),
            Behaviour::Connect(page) => write!(f, "connect:{}", page.status),
            Behaviour::SocksReply(code) => write!(f, "socks:{code}"),
            Behaviour::Limit { sockets, over } => match over {
                Over::Page(page) => write!(f, "limit:{sockets}:{}", page.status),
                Over::Reset => write!(f, "limit:{sockets}:reset"),
            },
            Behaviour::Towards { host, bad } => write!(f, "at:{host}:{bad}"),
            Behaviour::First { times, bad } => write!(f, "first:{times}:{bad}"),
            Behaviour::Flap {
                good,
                bad_times,
                bad,
            } => write!(f, "flap:{good}:{bad_times}:{bad}"),
            Behaviour::Swing {
                good,
                bad_time,
                bad,
            } => write!(
                f,
                "swing:{}:{}:{bad}",
                good.as_millis(),
                bad_time.as_millis()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_and_written_alike() {
        for word in [
            "good",
            "refuse",
            "drop-syn",
            "reset",
            "close",
            "hang",
            "hang-handshake",
            "close-handshake",
            "mail",
            "intercept",
            "cut",
            "garbage",
            "all:407",
            "page:502",
            "connect:403",
            "socks:5",
            "limit:3:429",
            "limit:3:reset",
            "at:a.test:connect:403",
            "first:6:all:502",
            "flap:10:5:reset",
            "swing:1000:500:limit:3:429",
        ] {
            let behaviour: Behaviour = word.parse().unwrap();
            assert_eq!(behaviour.to_string(), word);
        }
        assert_eq!(
            "502".parse::<Behaviour>(),
            Ok(Behaviour::Everything(Page::bare(502)))
        );
    }

    #[test]
    fn a_word_that_means_nothing_is_refused() {
        for word in [
            "",
            "god",
            "99",
            "1000",
            "page:",
            "page:x",
            "socks:256",
            "limit:3",
            "limit:x:429",
            "first:6",
            "first:6:first:2:502",
            "flap:1:502",
        ] {
            assert!(word.parse::<Behaviour>().is_err(), "{word}");
        }
    }
}
