//! Fetching a list given as URL.
//!
//! The control plane's only request: it goes out directly, honours the environment's
//! proxy variables and is not bound by exits or budgets. Owns its limits and keeps the
//! URL's secrets out of errors.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use futures_util::TryStreamExt;
use reqwest::{Client, ClientBuilder};
use rustls::{ClientConfig, RootCertStore};
use tokio_util::io::StreamReader;
use url::Url;

use super::source::Bytes;
use crate::model::Secret;

/// How long the connection to the list's server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may be silent: before its answer, and inside it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The list's URL as messages show it: scheme, host and port. Path and query hold tokens
/// often enough to be left out.
pub(super) fn shown(url: &Secret) -> String {
    match Url::parse(url.expose()) {
        Ok(url) => {
            let port = url.port().map(|port| format!(":{port}"));
            format!(
                "{}://{}{}/…",
                url.scheme(),
                url.host_str().unwrap_or_default(),
                port.unwrap_or_default()
            )
        }
        Err(_) => "the list's URL".to_owned(),
    }
}

/// The body of the answer as it arrives.
///
/// # Errors
/// No connection, a status other than 2xx, or silence for [`READ_TIMEOUT`].
pub(super) async fn open(url: &Secret) -> anyhow::Result<Bytes> {
    let client = ClientBuilder::new()
        .tls_backend_preconfigured(tls())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .user_agent(concat!("exitfetch/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(reqwest::Error::without_url)?;
    get(&client, url).await
}

async fn get(client: &Client, url: &Secret) -> anyhow::Result<Bytes> {
    let url = Url::parse(url.expose()).context("the URL is not valid")?;
    let response = client
        .get(url)
        .send()
        .await
        .map_err(reqwest::Error::without_url)?;
    if !response.status().is_success() {
        bail!("the server answered {}", response.status().as_u16());
    }
    let body = response
        .bytes_stream()
        .map_err(|error| std::io::Error::other(error.without_url()));
    Ok(Box::pin(StreamReader::new(body)))
}

/// The system's roots with the crypto provider of the rest of the program. Made here and
/// not left to reqwest, which would want a process-wide default provider.
fn tls() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Serves `answer` to one request; returns the list's URL with secrets all over it.
    async fn serve(answer: &'static str) -> Secret {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let read = socket.read(&mut request).await.unwrap();
            assert!(request[..read].starts_with(b"GET /hunter2/list?key=hunter2 "));
            socket.write_all(answer.as_bytes()).await.unwrap();
        });
        Secret::new(format!(
            "http://hunter2:hunter2@127.0.0.1:{port}/hunter2/list?key=hunter2"
        ))
    }

    async fn read(url: &Secret) -> anyhow::Result<String> {
        let client = ClientBuilder::new()
            .tls_backend_preconfigured(tls())
            .no_proxy()
            .build()?;
        let mut text = String::new();
        get(&client, url).await?.read_to_string(&mut text).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn the_body_of_the_answer_is_the_list() {
        let url = serve("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\na\nb\n").await;
        assert_eq!(read(&url).await.unwrap(), "a\nb\n");
    }

    #[tokio::test]
    async fn errors_do_not_show_the_secrets_of_the_url() {
        for (answer, word) in [
            ("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "403"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut", ""),
            ("no http", ""),
        ] {
            let url = serve(answer).await;
            let error = read(&url).await.unwrap_err();
            let said = format!("{error:#} {error:?}");
            assert!(said.contains(word), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }

    #[test]
    fn a_list_url_is_shown_without_path_query_and_login() {
        let shown = |url: &str| shown(&Secret::new(url));
        assert_eq!(shown("https://u:p@h.test:81/t?k=1"), "https://h.test:81/…");
        assert_eq!(shown("http://h.test"), "http://h.test/…");
        assert_eq!(shown("http://u:p@[/x"), "the list's URL");
    }
}
