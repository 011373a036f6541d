use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not a public one, as a word for the error text; `None` for a public address.
///
/// An IPv6 address that carries an IPv4 address is judged by the one it carries: that is where the
/// packets end up.
pub(crate) fn not_public_because(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => ipv4(address),
        IpAddr::V6(address) => ipv6(address),
    }
}

fn ipv4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => "unspecified",
        (127, ..) => "loopback",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "private",
        (169, 254, _) => "link-local",
        (100, 64..=127, _) => "shared (carrier-grade NAT)",
        (198, 18..=19, _) => "reserved for benchmarking",
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => "reserved for documentation",
        (192, 0, 0) | (192, 88, 99) => "reserved",
        (224..=239, ..) => "multicast",
        (255, 255, 255) if address.is_broadcast() => "broadcast",
        (240..=255, ..) => "reserved",
        _ => return None,
    })
}

fn ipv6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() {
        return Some("unspecified");
    }
    if address.is_loopback() {
        return Some("loopback");
    }
    let segments = address.segments();
    match segments {
        // IPv4-mapped and NAT64: reached as the IPv4 address they carry.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            ipv4(carried(high, low))
        }
        // IPv4-compatible, long withdrawn: never a public service.
        [0, 0, 0, 0, 0, 0, high, low] => ipv4(carried(high, low)).or(Some("reserved")),
        // 6to4.
        [0x2002, high, low, ..] => ipv4(carried(high, low)),
        // Teredo: the server's address in the clear, the client's inverted.
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            ipv4(carried(!high, !low)).or_else(|| ipv4(carried(server_high, server_low)))
        }
        [0x2001, 0x2, 0, ..] => Some("reserved for benchmarking"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0x0fff, ..] => Some("reserved for documentation"),
        [0x2001, 0..=0x1ff, ..] => Some("reserved"),
        [0xfc00..=0xfdff, ..] => Some("unique-local"),
        [0xfe80..=0xfebf, ..] => Some("link-local"),
        [0xfec0..=0xfeff, ..] => Some("site-local"),
        [0xff00..=0xffff, ..] => Some("multicast"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("reserved"),
    }
}

fn carried(high: u16, low: u16) -> Ipv4Addr {
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    Ipv4Addr::new(a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range_that_is_not_public_is_named() {
        for (address, why) in [
            ("0.0.0.0", "unspecified"),
            ("0.1.2.3", "unspecified"),
            ("10.0.0.1", "private"),
            ("100.64.0.1", "shared (carrier-grade NAT)"),
            ("100.127.255.255", "shared (carrier-grade NAT)"),
            ("127.0.0.1", "loopback"),
            ("127.255.255.254", "loopback"),
            ("169.254.169.254", "link-local"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.0.0.8", "reserved"),
            ("192.0.2.1", "reserved for documentation"),
            ("192.88.99.1", "reserved"),
            ("192.168.1.1", "private"),
            ("198.18.0.1", "reserved for benchmarking"),
            ("198.19.255.255", "reserved for benchmarking"),
            ("198.51.100.1", "reserved for documentation"),
            ("203.0.113.9", "reserved for documentation"),
            ("224.0.0.1", "multicast"),
            ("239.255.255.255", "multicast"),
            ("240.0.0.1", "reserved"),
            ("255.255.255.255", "broadcast"),
            ("::", "unspecified"),
            ("::1", "loopback"),
            ("::ffff:127.0.0.1", "loopback"),
            ("::ffff:10.1.2.3", "private"),
            ("::ffff:169.254.169.254", "link-local"),
            ("::7f00:1", "loopback"),
            ("::192.168.0.1", "private"),
            ("::8.8.8.8", "reserved"),
            ("64:ff9b::127.0.0.1", "loopback"),
            ("64:ff9b::10.0.0.1", "private"),
            ("64:ff9b:1::1", "reserved"),
            ("100::1", "reserved"),
            ("2002:7f00:1::1", "loopback"),
            ("2002:c0a8:101::", "private"),
            // Teredo for the client 192.168.1.1: inverted 3f57:fefe.
            ("2001:0:4136:e378:8000:63bf:3f57:fefe", "private"),
            // Teredo through a server on a private address.
            ("2001:0:a00:1:8000:63bf:f7f7:f7f7", "private"),
            ("2001:2::1", "reserved for benchmarking"),
            ("2001:10::1", "reserved"),
            ("2001:db8::1", "reserved for documentation"),
            ("3fff::1", "reserved for documentation"),
            ("fc00::1", "unique-local"),
            ("fd12:3456::1", "unique-local"),
            ("fe80::1", "link-local"),
            ("febf::1", "link-local"),
            ("fec0::1", "site-local"),
            ("ff02::1", "multicast"),
            ("4000::1", "reserved"),
            ("5f00::1", "reserved"),
        ] {
            let parsed: IpAddr = address.parse().unwrap();
            assert_eq!(not_public_because(parsed), Some(why), "{address}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2002:808:808::1",
            "2001:4860:4860::8888",
        ] {
            let parsed: IpAddr = address.parse().unwrap();
            assert_eq!(not_public_because(parsed), None, "{address}");
        }
    }
}
