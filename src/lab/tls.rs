//! Certificates of the lab's own: an authority that vouches for any name at once.
//!
//! One key serves all leaves, so minting one is a signature (some 50 µs) and is done once per
//! name. A second authority, which nobody is told to trust, serves exits that intercept.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, SigningKey};

/// Leaves kept; above that they are minted anew.
const KEPT: usize = 8192;

/// A certificate authority that makes certificates on demand.
pub(super) struct Authority {
    pem: String,
    mint: Arc<Mint>,
    by_name: Arc<ServerConfig>,
    by_address: Mutex<HashMap<IpAddr, Arc<ServerConfig>>>,
    provider: Arc<CryptoProvider>,
}

impl Authority {
    /// A new authority called `name`.
    pub(super) fn new(name: &str) -> anyhow::Result<Authority> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mint = Arc::new(Mint::new(name)?);
        Ok(Authority {
            pem: mint.issuer.pem(),
            by_name: server_config(
                &provider,
                ByName {
                    mint: Arc::clone(&mint),
                    otherwise: "localhost".into(),
                },
            )?,
            by_address: Mutex::default(),
            mint,
            provider,
        })
    }

    /// The authority's own certificate.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// The server side for a connection meant for `host`: the certificate is for the name
    /// that the client asks for, and where it asks for none (an address), for `host`.
    pub(super) fn server(&self, host: &str) -> anyhow::Result<Arc<ServerConfig>> {
        let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return Ok(Arc::clone(&self.by_name));
        };
        let mut known = lock(&self.by_address);
        if let Some(config) = known.get(&address) {
            return Ok(Arc::clone(config));
        }
        let resolver = ByName {
            mint: Arc::clone(&self.mint),
            otherwise: address.to_string().into(),
        };
        let config = server_config(&self.provider, resolver)?;
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(address, Arc::clone(&config));
        Ok(config)
    }

    /// The server side that says it is `name`, whatever it is asked for.
    pub(super) fn server_as(&self, name: &'static str) -> anyhow::Result<Arc<ServerConfig>> {
        let mint = Arc::clone(&self.mint);
        server_config(&self.provider, Always { mint, name })
    }
}

fn server_config(
    provider: &Arc<CryptoProvider>,
    resolver: impl ResolvesServerCert + 'static,
) -> anyhow::Result<Arc<ServerConfig>> {
    let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_safe_default_protocol_versions()
        .context("set up TLS for the lab")?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Chooses the certificate by the name in the client's hello.
#[derive(Debug)]
struct ByName {
    mint: Arc<Mint>,
    /// Where the hello has none.
    otherwise: Box<str>,
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.mint
            .leaf(hello.server_name().unwrap_or(&self.otherwise))
    }
}

/// Shows the same certificate to all.
#[derive(Debug)]
struct Always {
    mint: Arc<Mint>,
    name: &'static str,
}

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.mint.leaf(self.name)
    }
}

struct Mint {
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaf_key: KeyPair,
    signer: Arc<dyn SigningKey>,
    leaves: Mutex<HashMap<Box<str>, Arc<CertifiedKey>>>,
}

impl Mint {
    fn new(name: &str) -> anyhow::Result<Mint> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().context("make the lab authority's key")?;
        let issuer = CertifiedIssuer::self_signed(params, key)
            .context("sign the lab authority's certificate")?;
        let leaf_key = KeyPair::generate().context("make the lab's server key")?;
        let der = PrivateKeyDer::try_from(leaf_key.serialize_der()).map_err(anyhow::Error::msg)?;
        let signer = rustls::crypto::ring::sign::any_supported_type(&der)
            .context("load the lab's server key")?;
        Ok(Mint {
            issuer,
            leaf_key,
            signer,
            leaves: Mutex::default(),
        })
    }

    /// The certificate for `host`, minted when it is first asked for. `None` if the name
    /// cannot stand in a certificate.
    fn leaf(&self, host: &str) -> Option<Arc<CertifiedKey>> {
        if let Some(leaf) = lock(&self.leaves).get(host) {
            return Some(Arc::clone(leaf));
        }
        let mut params = CertificateParams::new(vec![host.to_owned()]).ok()?;
        params.distinguished_name.push(DnType::CommonName, "lab");
        params.use_authority_key_identifier_extension = true;
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let leaf = params.signed_by(&self.leaf_key, &self.issuer).ok()?;
        let chain = vec![leaf.into(), self.issuer.der().clone()];
        let leaf = Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signer)));
        let mut leaves = lock(&self.leaves);
        if leaves.len() >= KEPT {
            leaves.clear();
        }
        leaves.insert(host.into(), Arc::clone(&leaf));
        Some(leaf)
    }
}

impl std::fmt::Debug for Mint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mint")
    }
}

/// A poisoned lock means that a task of the lab died; what it guards is a cache or a count.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_minted_once_per_name() {
        let mint = Mint::new("test").unwrap();
        let first = mint.leaf("a.test").unwrap();
        assert!(Arc::ptr_eq(&first, &mint.leaf("a.test").unwrap()));
        assert_ne!(first.cert[0], mint.leaf("b.test").unwrap().cert[0]);
    }

    #[test]
    fn addresses_have_a_configuration_each_and_names_share_one() {
        let authority = Authority::new("test").unwrap();
        let of = |host| authority.server(host).unwrap();
        assert!(Arc::ptr_eq(&of("a.test"), &of("b.test")));
        assert!(Arc::ptr_eq(&of("::1"), &of("[::1]")));
        assert!(!Arc::ptr_eq(&of("127.0.0.1"), &of("::1")));
        assert!(authority.pem().starts_with("-----BEGIN CERTIFICATE-----"));
    }
}
