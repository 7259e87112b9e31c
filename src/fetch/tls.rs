//! TLS with exits and origins: what is trusted, one configuration per exit, the handshake.
//!
//! Each exit has a configuration of its own, made when it is first needed, because it holds
//! the session tickets: resumed through another exit they would tell the origin that two
//! identities are one client.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, RootCertStore, SignatureScheme,
    WantsVerifier,
};
use tokio_rustls::TlsConnector;

use crate::model::{Fault, FaultKind, Phase};

use super::alarm::Alarm;
use super::fault::{fault, of_io};
use super::wire::Wire;
use super::workers::Workers;

/// Sessions kept per exit. More saves handshakes where an exit visits more TLS origins in
/// turn, at about 1 KiB each.
const SESSIONS: usize = 32;

/// Which certificates are taken as valid.
#[derive(Clone)]
pub struct TlsRoots(Trust);

#[derive(Clone)]
enum Trust {
    /// The system's roots and these.
    System(Arc<RootCertStore>),
    /// Nobody's.
    #[cfg(test)]
    Nobody,
    Anybody,
}

impl TlsRoots {
    /// The system's roots and those of the PEM file `cacert`.
    ///
    /// A system without roots is no error: plain `http://` needs none, and a certificate
    /// then fails with its own fault.
    ///
    /// # Errors
    /// If `cacert` cannot be read or holds no usable certificate.
    pub fn load(cacert: Option<&Path>) -> anyhow::Result<TlsRoots> {
        let mut roots = RootCertStore::empty();
        if let Some(path) = cacert {
            add_file(&mut roots, path)
                .with_context(|| format!("cannot use the certificates of {}", path.display()))?;
        }
        Ok(TlsRoots(Trust::System(Arc::new(roots))))
    }

    /// Takes every certificate (`--insecure`).
    pub fn insecure() -> TlsRoots {
        TlsRoots(Trust::Anybody)
    }

    /// Takes no certificate at all.
    #[cfg(test)]
    pub(super) fn none() -> TlsRoots {
        TlsRoots(Trust::Nobody)
    }
}

/// The configuration that all exits start from, without sessions. Finished on first use:
/// reading the system's roots takes some 10 ms, and many runs need none.
pub(super) struct Tls {
    trust: Trust,
    provider: Arc<CryptoProvider>,
    builder: ConfigBuilder<ClientConfig, WantsVerifier>,
    config: OnceLock<ClientConfig>,
    workers: Workers,
}

impl Tls {
    /// Will trust `roots`.
    ///
    /// # Errors
    /// If the crypto provider lacks TLS 1.2 or 1.3 (ring does not).
    pub(super) fn new(roots: TlsRoots) -> anyhow::Result<Tls> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
        Ok(Tls {
            trust: roots.0,
            provider,
            builder,
            config: OnceLock::new(),
            workers: Workers::default(),
        })
    }

    fn config(&self) -> &ClientConfig {
        self.config.get_or_init(|| self.finished())
    }

    fn finished(&self) -> ClientConfig {
        let builder = self.builder.clone();
        let mut config = match &self.trust {
            Trust::System(more) => {
                let mut roots = RootCertStore::clone(more);
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                builder.with_root_certificates(roots)
            }
            #[cfg(test)]
            Trust::Nobody => builder.with_root_certificates(RootCertStore::empty()),
            Trust::Anybody => {
                let verifier = TakeAny(Arc::clone(&self.provider));
                let builder = builder.dangerous();
                builder.with_custom_certificate_verifier(Arc::new(verifier))
            }
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config
    }
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> anyhow::Result<()> {
    let mut found = 0;
    for certificate in CertificateDer::pem_slice_iter(&std::fs::read(path)?) {
        roots.add(certificate?)?;
        found += 1;
    }
    if found == 0 {
        bail!("no certificate in it: it must be PEM, with BEGIN CERTIFICATE lines");
    }
    Ok(())
}

/// `--insecure`: any certificate will do; signatures are still checked, so that the
/// handshake is one with the owner of whatever key was shown.
#[derive(Debug)]
struct TakeAny(Arc<CryptoProvider>);

impl ServerCertVerifier for TakeAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The TLS side of one exit, made on first use.
#[derive(Default)]
pub(super) struct Sessions(OnceLock<TlsConnector>);

impl Sessions {
    /// Makes `wire` a TLS connection with `name`. `phase` says with whom, for the facts.
    pub(super) async fn connect(
        &self,
        base: &Tls,
        (phase, name): (Phase, ServerName<'static>),
        wire: Wire,
        alarm: &mut Alarm,
    ) -> Result<Wire, Fault> {
        let connector = self.0.get_or_init(|| {
            let mut config = base.config().clone();
            config.resumption = Resumption::in_memory_sessions(SESSIONS);
            TlsConnector::from(Arc::new(config))
        });
        let handshake = connector.connect(name, wire);
        match base.workers.run(alarm, handshake).await {
            Ok(Some(Ok(stream))) => Ok(Wire::tls(stream)),
            Ok(Some(Err(err))) => Err(of_io(phase, &err)),
            Ok(None) => {
                let detail = "the handshake's thread panicked";
                Err(fault(phase, FaultKind::Protocol, detail))
            }
            Err(passed) => Err(passed.fault(phase, "no TLS handshake")),
        }
    }
}
