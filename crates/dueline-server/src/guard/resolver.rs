use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use dueline::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::not_public_because;
use super::target_url::is_local_name;

/// Turns a host name into addresses. The guard checks what it answers.
pub trait Lookup: Send + Sync + fmt::Debug {
    /// All addresses of a name.
    ///
    /// # Errors
    /// What the resolver says; the attempt fails and is tried again later.
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, name: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let name = name.to_owned();
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }
}

/// A resolver for the HTTP client that hands out checked addresses only. If any address of a name
/// is not public the name is refused as a whole: a mixed answer is how a name is made to point
/// inwards at the second look.
#[derive(Clone, Debug)]
pub(crate) struct GuardedResolver {
    lookup: Arc<dyn Lookup>,
    allow_private: bool,
}

impl GuardedResolver {
    pub(crate) fn new(lookup: Arc<dyn Lookup>, allow_private: bool) -> Self {
        Self {
            lookup,
            allow_private,
        }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = Arc::clone(&self.lookup);
        let allow_private = self.allow_private;
        Box::pin(async move {
            let name = name.as_str();
            if !allow_private && is_local_name(name) {
                return Err(Refused::new(name, "local").into());
            }
            let addresses = lookup.lookup(name).await?;
            if !allow_private
                && let Some(why) = addresses.iter().find_map(|ip| not_public_because(*ip))
            {
                return Err(Refused::new(name, why).into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// A name that points at an address that may not be called. The text names the kind of address and
/// not the address: it reaches whoever scheduled the timer.
#[derive(Debug)]
struct Refused {
    name: String,
    why: &'static str,
}

impl Refused {
    fn new(name: &str, why: &'static str) -> Self {
        Self {
            name: name.to_owned(),
            why,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "refused: {} resolves to a {} address",
            self.name, self.why
        )
    }
}

impl std::error::Error for Refused {}
