//! The certificates of one control plane: a CA of its own, made anew at each start.

use std::{
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

use crate::{TestbedError, process::write_private};

/// A certificate and its key, as PEM.
#[derive(Debug, Clone)]
pub struct Identified {
    /// The certificate.
    pub certificate: String,
    /// The private key.
    pub key: String,
}

/// The authority of one control plane.
#[derive(Debug)]
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes a new authority.
    ///
    /// # Errors
    /// [`TestbedError::Certificate`].
    pub fn new() -> Result<Self, TestbedError> {
        let subject = "belay-testbed";
        let failed = failed(subject);
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, subject);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().map_err(&failed)?;
        let certificate = params.self_signed(&key).map_err(&failed)?.pem();
        Ok(Self { certificate, issuer: Issuer::new(params, key) })
    }

    /// The authority's own certificate, as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A serving certificate for loopback and the names a cluster knows its API server by.
    ///
    /// # Errors
    /// [`TestbedError::Certificate`].
    pub fn server(&self, subject: &str, names: &[&str]) -> Result<Identified, TestbedError> {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        for name in names.iter().chain(&["localhost"]) {
            let name = (*name).try_into().map_err(failed(subject))?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        self.sign(params, subject, &[])
    }

    /// A client certificate: the common name is the user, the organisations are the groups.
    ///
    /// # Errors
    /// [`TestbedError::Certificate`].
    pub fn client(&self, user: &str, groups: &[&str]) -> Result<Identified, TestbedError> {
        let mut params = CertificateParams::default();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params, user, groups)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        subject: &str,
        groups: &[&str],
    ) -> Result<Identified, TestbedError> {
        let failed = failed(subject);
        params.distinguished_name.push(DnType::CommonName, subject);
        for group in groups {
            params.distinguished_name.push(DnType::OrganizationName, *group);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(&failed)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(&failed)?.pem();
        Ok(Identified { certificate, key: key.serialize_pem() })
    }
}

fn failed(subject: &str) -> impl Fn(rcgen::Error) -> TestbedError {
    let subject = subject.to_owned();
    move |source| TestbedError::Certificate { subject: subject.clone(), source }
}

impl Identified {
    /// Writes `NAME.crt` and `NAME.key`.
    ///
    /// # Errors
    /// [`TestbedError::File`].
    pub fn write(&self, folder: &Path, name: &str) -> Result<(PathBuf, PathBuf), TestbedError> {
        let (crt, key) = (folder.join(format!("{name}.crt")), folder.join(format!("{name}.key")));
        write_private(&crt, &self.certificate)?;
        write_private(&key, &self.key)?;
        Ok((crt, key))
    }
}

/// A key pair that signs ServiceAccount tokens, as PEM (private, public).
///
/// # Errors
/// [`TestbedError::Certificate`].
pub fn service_account_keys() -> Result<(String, String), TestbedError> {
    let key = KeyPair::generate().map_err(failed("ServiceAccount tokens"))?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}
