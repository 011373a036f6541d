//! The flags behind what a refusal of the server points at: whoever typed flags never saw the body they
//! became.

use std::borrow::Cow;

/// The flag that a JSON pointer into a timer, or the name of a parameter, came from; what came from none
/// stays as it is.
pub(crate) fn of(pointer: &str) -> Cow<'_, str> {
    if let Some(name) = pointer.strip_prefix("/target/headers/") {
        let name = name.replace("~1", "/").replace("~0", "~");
        return Cow::Owned(format!("--header {name}"));
    }
    Cow::Borrowed(match pointer {
        "/due_at" => "--at",
        "/delay" => "--in",
        "/target" | "/target/url" => "--url",
        "/target/headers" => "--header",
        "/retry/attempts_max" => "--attempts-max",
        "/retry/initial" => "--retry-initial",
        "/retry/max" => "--retry-max",
        "/envelope" => "--envelope",
        "/deadline" => "--deadline",
        "?state" => "--state",
        "?due_before" => "--due-before",
        "?prefix" => "--prefix",
        "?page_size" => "--limit",
        "?page_token" => "--page-token",
        _ if pointer == "/payload" || pointer.starts_with("/payload/") => "--payload",
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_from_a_flag_is_called_by_it() {
        for (pointer, flag) in [
            ("/target/url", "--url"),
            ("/delay", "--in"),
            ("/due_at", "--at"),
            ("/payload/deep/down", "--payload"),
            ("/payload_base64", "/payload_base64"),
            ("/target/headers/x~1y~0", "--header x/y~"),
            ("?page_size", "--limit"),
            ("/new", "/new"),
        ] {
            assert_eq!(of(pointer), flag);
        }
    }
}
