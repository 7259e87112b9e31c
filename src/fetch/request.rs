//! From a job's request to the bytes of it: target form and headers.
//!
//! Headers come from four places; the later wins: defaults, `-H`, those configured for the
//! origin, the job's own. `Host`, lengths and everything that belongs to one connection are
//! made here and can be given nowhere. `Authorization` and `Cookie` from `-H` or the job
//! stay behind once redirects have left the job's origin.

use std::collections::HashMap;

use anyhow::{Context, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use http_body_util::Full;
use url::{Position, Url};

use crate::model::{Fault, FaultKind, Origin, Phase, Route, Secret};

use super::conn::authority;
use super::fault::{fault, one_line};
use super::path::Built;
use super::{Coding, Options, Validators, decode};

/// What a job asks for, at the present hop of its redirects.
pub struct Request {
    /// Not CONNECT.
    pub method: Method,
    /// Absolute http or https URL; userinfo and fragment are not sent.
    pub target: Url,
    /// Value of `Authorization` that came with the job's URL.
    pub authorization: Option<Secret>,
    /// The job's own headers.
    pub headers: Option<HeaderMap>,
    /// Sent with its length.
    pub body: Option<Bytes>,
    /// A redirect has left the origin of the job.
    pub left_origin: bool,
    /// What is stored of the target already; makes the request a conditional one.
    pub validators: Option<Validators>,
}

/// The headers that requests start from.
pub(super) struct Templates {
    general: Template,
    per_origin: HashMap<String, Template>,
}

/// One set of headers, and what of it may follow a job to another origin.
struct Template {
    home: HeaderMap,
    away: HeaderMap,
}

impl Templates {
    /// # Errors
    /// A header that is made here was given.
    pub(super) fn new(
        options: &Options,
        user_agent: Option<&HeaderValue>,
    ) -> anyhow::Result<Templates> {
        let mut defaults = HeaderMap::new();
        // The value comes with each request; the place is the first line.
        defaults.insert(header::HOST, HeaderValue::from_static(""));
        if let Some(value) = user_agent {
            defaults.insert(header::USER_AGENT, value.clone());
        }
        defaults.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        let codings = match options.coding {
            Coding::Identity => "identity",
            Coding::Compressed => decode::ACCEPTED,
        };
        defaults.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(codings));

        refuse_ours(&options.headers)?;
        let mut home = defaults;
        overlay(&mut home, &options.headers);
        let away = without_private(&home);
        let mut per_origin = HashMap::new();
        for (origin, headers) in &options.per_origin_headers {
            refuse_ours(headers).with_context(|| format!("headers of origin {origin}"))?;
            let with = |base: &HeaderMap| {
                let mut all = base.clone();
                overlay(&mut all, headers);
                all
            };
            let (home, away) = (with(&home), with(&away));
            per_origin.insert(origin.clone(), Template { home, away });
        }
        Ok(Templates {
            general: Template { home, away },
            per_origin,
        })
    }

    fn of(&self, request: &Request) -> HeaderMap {
        let template = if self.per_origin.is_empty() {
            &self.general
        } else {
            let origin = Origin::of(&request.target);
            let own = self.per_origin.get(origin.as_str());
            own.unwrap_or(&self.general)
        };
        if request.left_origin {
            template.away.clone()
        } else {
            template.home.clone()
        }
    }
}

/// Everything that one request is made from; can make it again for a second socket.
pub(super) struct Outgoing<'a> {
    pub(super) request: &'a Request,
    pub(super) templates: &'a Templates,
    pub(super) route: Route,
    /// For the exit that is asked in absolute-form.
    pub(super) proxy_authorization: Option<&'a HeaderValue>,
    /// Whether the connection may serve another request after this one.
    pub(super) keep_alive: bool,
}

impl Outgoing<'_> {
    /// The request for hyper.
    ///
    /// # Errors
    /// [`FaultKind::BadRequest`] if it cannot be written as HTTP.
    pub(super) fn build(&self) -> Result<Built, Fault> {
        let body = self.request.body.clone().unwrap_or_default();
        let mut built = Box::new(http::Request::new(Full::new(body)));
        *built.method_mut() = self.request.method.clone();
        *built.uri_mut() = self.uri()?;
        *built.headers_mut() = self.headers()?;
        Ok(built)
    }

    fn uri(&self) -> Result<Uri, Fault> {
        let url = &self.request.target;
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let uri = match self.route {
            Route::Tunnel => Uri::try_from(path),
            Route::Forward => Uri::from_maybe_shared(absolute(url)),
        };
        uri.map_err(|err| bad_request(format!("the URL cannot be sent: {}", one_line(&err))))
    }

    fn headers(&self) -> Result<HeaderMap, Fault> {
        let request = self.request;
        let mut headers = self.templates.of(request);
        let host = Bytes::copy_from_slice(authority(&request.target).as_bytes());
        let host = HeaderValue::from_maybe_shared(host)
            .map_err(|_| bad_request("the host cannot be sent as a header"))?;
        if let Some(secret) = &request.authorization
            && !request.left_origin
        {
            let value = private(secret.expose())
                .map_err(|_| bad_request("the URL's login cannot be sent as a header"))?;
            headers.insert(header::AUTHORIZATION, value);
        }
        match &request.headers {
            Some(own) if request.left_origin => overlay(&mut headers, &without_private(own)),
            Some(own) => overlay(&mut headers, own),
            None => {}
        }
        if let Some(own) = &request.headers
            && let Some(name) = own.keys().find(|name| is_ours(name))
        {
            return Err(bad_request(format!("the header `{name}` cannot be given")));
        }
        if let Some(validators) = &request.validators {
            validators.add_to(&mut headers);
        }
        headers.insert(header::HOST, host);
        if let (Route::Forward, Some(value)) = (self.route, self.proxy_authorization) {
            headers.insert(header::PROXY_AUTHORIZATION, value.clone());
        }
        if !self.keep_alive {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.announces_no_body() {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(0));
        }
        Ok(headers)
    }

    /// RFC 9110 §8.6: where the method expects a body, say that there is none.
    fn announces_no_body(&self) -> bool {
        let empty = self
            .request
            .body
            .as_ref()
            .is_none_or(|body| body.is_empty());
        empty && matches!(self.request.method.as_str(), "POST" | "PUT" | "PATCH")
    }
}

/// `url` as an exit is asked for it: no userinfo, no fragment.
fn absolute(url: &Url) -> Bytes {
    if url.username().is_empty() && url.password().is_none() {
        return Bytes::copy_from_slice(url[..Position::AfterQuery].as_bytes());
    }
    let path = &url[Position::BeforePath..Position::AfterQuery];
    Bytes::from(format!("{}://{}{path}", url.scheme(), authority(url)))
}

fn bad_request(detail: impl Into<String>) -> Fault {
    fault(Phase::Head, FaultKind::BadRequest, detail)
}

/// A header value that no `Debug` shows.
pub(super) fn private(value: &str) -> Result<HeaderValue, header::InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(value)?;
    value.set_sensitive(true);
    Ok(value)
}

/// Puts `over` above `base`: a name in `over` replaces all of its lines in `base`.
fn overlay(base: &mut HeaderMap, over: &HeaderMap) {
    for name in over.keys() {
        let mut values = over.get_all(name).iter();
        if let Some(first) = values.next() {
            base.insert(name, first.clone());
        }
        for value in values {
            base.append(name, value.clone());
        }
    }
}

fn without_private(headers: &HeaderMap) -> HeaderMap {
    let mut rest = headers.clone();
    for name in [header::AUTHORIZATION, header::COOKIE] {
        rest.remove(name);
    }
    rest
}

/// Headers that belong to the connection, to the exit or to the message's framing.
fn is_ours(name: &HeaderName) -> bool {
    let name = name.as_str();
    name.starts_with("proxy-")
        || [
            "host",
            "connection",
            "content-length",
            "expect",
            "keep-alive",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ]
        .contains(&name)
}

fn refuse_ours(headers: &HeaderMap) -> anyhow::Result<()> {
    match headers.keys().find(|name| is_ours(name)) {
        Some(name) => bail!("the header `{name}` cannot be given: exitfetch makes it itself"),
        None => Ok(()),
    }
}
