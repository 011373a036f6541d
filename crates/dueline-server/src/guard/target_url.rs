use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::address::not_public_because;

/// Longest target URL, in bytes.
pub(crate) const URL_BYTES_MAX: usize = 4_096;

/// Why a URL cannot be the target of a webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TargetUrlError {
    TooLong(usize),
    Blank,
    Unparseable(url::ParseError),
    Scheme(String),
    Credentials,
    Fragment,
    NoHost,
    LocalName,
    NotPublic(&'static str),
}

impl fmt::Display for TargetUrlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HOW: &str = "start the server with --allow-private-targets to permit it";
        match self {
            Self::TooLong(bytes) => {
                write!(
                    f,
                    "a URL has at most {URL_BYTES_MAX} bytes, this one has {bytes}"
                )
            }
            Self::Blank => write!(f, "a URL has no spaces and no control characters"),
            Self::Unparseable(url::ParseError::RelativeUrlWithoutBase) => {
                write!(f, "the URL has no scheme; begin it with https://")
            }
            Self::Unparseable(error) => write!(f, "not an absolute URL: {error}"),
            Self::Scheme(scheme) => {
                write!(
                    f,
                    "the scheme must be http or https, not {scheme}; begin it with https://"
                )
            }
            Self::Credentials => write!(
                f,
                "a URL must not carry a user name or password; send an authorization header"
            ),
            Self::Fragment => write!(
                f,
                "a URL must not carry a fragment (#...): it is never sent"
            ),
            Self::NoHost => write!(f, "the URL names no host"),
            Self::LocalName => write!(f, "the host is this machine; {HOW}"),
            Self::NotPublic(why) => write!(f, "the host is a {why} address; {HOW}"),
        }
    }
}

impl std::error::Error for TargetUrlError {}

/// Reads a target URL in the form in which it will be used, and refuses what may not be called.
///
/// The parser normalises every spelling of an IPv4 address (decimal, octal, hexadecimal, short), so
/// the address that is looked at is the one that would be connected to.
pub(crate) fn check_target_url(text: &str, allow_private: bool) -> Result<Url, TargetUrlError> {
    if text.len() > URL_BYTES_MAX {
        return Err(TargetUrlError::TooLong(text.len()));
    }
    // The parser would silently drop tabs, line ends and blanks around the text.
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(TargetUrlError::Blank);
    }
    let url = Url::parse(text).map_err(TargetUrlError::Unparseable)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(TargetUrlError::Scheme(url.scheme().to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(TargetUrlError::Credentials);
    }
    if url.fragment().is_some() {
        return Err(TargetUrlError::Fragment);
    }
    let address = match url.host() {
        None => return Err(TargetUrlError::NoHost),
        Some(Host::Domain(name)) => {
            if !allow_private && is_local_name(name) {
                return Err(TargetUrlError::LocalName);
            }
            return Ok(url);
        }
        Some(Host::Ipv4(address)) => IpAddr::V4(address),
        Some(Host::Ipv6(address)) => IpAddr::V6(address),
    };
    match not_public_because(address) {
        Some(why) if !allow_private => Err(TargetUrlError::NotPublic(why)),
        _ => Ok(url),
    }
}

/// Whether a name means this machine by definition, whatever a resolver says.
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name == "localhost.localdomain"
}
