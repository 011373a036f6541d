use std::fmt;
use std::net::IpAddr;

use url::{Host, Url};

use super::address::not_public_because;
use crate::mutants::{Mutant, planted};

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
                    "a URL has at most {URL_BYTES_MAX} bytes once it is encoded, this one has {bytes}"
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

/// Reads a target URL in the form in which it will be used, and refuses what may not be called. The form
/// it gives is one that it takes: what was taken once is not refused when it is to be sent.
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
    if url.as_str().len() > URL_BYTES_MAX && !planted(Mutant::UrlMeasuredAsTyped) {
        return Err(TargetUrlError::TooLong(url.as_str().len()));
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_taken_again_in_the_form_it_was_given() {
        let path = |text: &str, times: usize| format!("https://a.example/{}", text.repeat(times));
        // A letter beyond ASCII takes two bytes as it is written and six once it is encoded.
        for text in [
            path("\u{e9}", 679),
            path("\u{e9}", 680),
            path("\u{e9}", 2_000),
            path("?", 4_078),
            path("\u{1f600}", 340),
            format!("https://{}.example/", "\u{e9}".repeat(20)),
            "http://0x7f.1.2/%zz/../..//?q='\u{7ff}'".to_owned(),
        ] {
            let Ok(url) = check_target_url(&text, true) else {
                assert!(text.len() > 1_000, "refused: {text}");
                continue;
            };
            let again = check_target_url(url.as_str(), true);
            assert_eq!(again.as_ref(), Ok(&url), "{text}");
        }
        let sound = |text: String| check_target_url(&text, true).is_ok();
        assert!(sound(path("\u{e9}", 679)) && !sound(path("\u{e9}", 680)));
    }
}
