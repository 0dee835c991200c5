//! A registry whose certificate comes from a private authority.

use std::sync::{Arc, Mutex};

use belay_adapters::registry::{Image, Registry, Settings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::fake::{DIGEST, Seen, found, serve, settings, word};

#[tokio::test]
async fn a_private_authority_is_trusted_where_it_is_handed_in() {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::<String>::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["registry.test".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let log: Arc<Mutex<Vec<Seen>>> = Arc::default();
    let seen = log.clone();
    tokio::spawn(async move {
        loop {
            let (connection, _) = listener.accept().await.unwrap();
            // A client that does not trust it ends the handshake.
            if let Ok(connection) = acceptor.accept(connection).await {
                tokio::spawn(serve(connection, seen.clone(), Arc::new(|_: &Seen| found())));
            }
        }
    });
    let image = Image::parse(&format!("registry.test:{port}/acme/web:v1")).unwrap();
    let named = [format!("registry.test:{port}")];
    let settings = settings(&named.each_ref().map(String::as_str));
    let client = Registry::new(settings.clone()).unwrap();
    assert_eq!(word(&client.head(&image, None).await), "transport");
    assert_eq!(log.lock().unwrap().len(), 0, "nothing is sent to whom is not trusted");
    let ca = vec![reqwest::Certificate::from_der(authority.der()).unwrap()];
    let client = Registry::new(Settings { ca, ..settings }).unwrap();
    assert_eq!(word(&client.head(&image, None).await), format!("found {DIGEST}"));
}
