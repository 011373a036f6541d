use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use bytes::Bytes;
use dueline::store::Partition;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a key, a value, a reference or a partition; cheap to clone.
///
/// In a line they are the text they are, if all of them can be printed, and else `hex:` and two digits
/// for each. So a reader sees names as names, and what is written reads back as the same bytes.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Octets(pub Bytes);

const HEX: &str = "hex:";
const DIGITS: &[u8; 16] = b"0123456789abcdef";

impl Octets {
    /// As they stand in a line.
    pub fn text(&self) -> Cow<'_, str> {
        let printable = |byte: &u8| matches!(byte, b' '..=b'~');
        if let Ok(text) = std::str::from_utf8(&self.0)
            && self.0.iter().all(printable)
            && !text.starts_with(HEX)
        {
            return Cow::Borrowed(text);
        }
        let mut text = String::with_capacity(HEX.len() + 2 * self.0.len());
        text.push_str(HEX);
        for byte in &self.0 {
            for half in [byte >> 4, byte & 15] {
                let digit = DIGITS.get(usize::from(half)).copied().unwrap_or(b'0');
                text.push(char::from(digit));
            }
        }
        Cow::Owned(text)
    }

    /// Reads what [`text`](Self::text) wrote; `None` for hex digits that are none.
    pub fn parse(text: &str) -> Option<Self> {
        let Some(hex) = text.strip_prefix(HEX) else {
            return Some(Self(Bytes::copy_from_slice(text.as_bytes())));
        };
        let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return None;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok())
            .collect();
        Some(Self(bytes?.into()))
    }
}

impl Deref for Octets {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.0
    }
}

impl fmt::Debug for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl fmt::Display for Octets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl From<Bytes> for Octets {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl From<&Bytes> for Octets {
    fn from(bytes: &Bytes) -> Self {
        Self(bytes.clone())
    }
}

impl From<&Partition> for Octets {
    fn from(partition: &Partition) -> Self {
        Self(partition.to_bytes())
    }
}

impl From<&'static str> for Octets {
    fn from(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }
}

impl Serialize for Octets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| D::Error::custom("hex digits that are none"))
    }
}

#[cfg(test)]
mod tests {
    use super::Octets;
    use bytes::Bytes;

    #[test]
    fn bytes_read_back_as_they_were_written() {
        for bytes in [
            &b""[..],
            b"order-1",
            b"hex:",
            b"hex:00",
            b"w\x00\x10",
            b"\xff\xfe",
            b"line\n",
        ] {
            let octets = Octets(Bytes::copy_from_slice(bytes));
            let line = serde_json::to_string(&octets).unwrap();
            assert_eq!(serde_json::from_str::<Octets>(&line).unwrap(), octets);
        }
        assert_eq!(Octets::from("order-1").text(), "order-1");
        assert_eq!(Octets::from("w\0").text(), "hex:7700");
        assert_eq!(Octets::parse("hex:0"), None);
        assert_eq!(Octets::parse("hex:0g"), None);
    }
}
