//! Hides everything that looks like a secret before a line is written.

/// The prefix of every Jurat key.
const KEY: &str = "jrt_live_";
/// The prefix of every secret of a webhook.
const WEBHOOK_SECRET: &str = "whsec_";
const HIDDEN: &str = "(hidden)";

/// The text without keys, and without user names and passwords in URLs.
pub(super) fn redacted(text: &str) -> String {
    without_credentials(&without_prefixed(&without_prefixed(text, KEY), WEBHOOK_SECRET))
}

fn without_prefixed(text: &str, prefix: &str) -> String {
    let mut parts = text.split(prefix);
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_of_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '+' | '/' | '=');
        clean.push_str(prefix);
        clean.push_str(HIDDEN);
        clean.push_str(part.trim_start_matches(is_of_key));
    }
    clean
}

fn without_credentials(text: &str) -> String {
    let mut parts = text.split("://");
    let mut clean = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        clean.push_str("://");
        let is_end = |c: char| c == '/' || c == '?' || c == '#' || c == '"' || c.is_whitespace();
        let authority = &part[..part.find(is_end).unwrap_or(part.len())];
        match authority.rfind('@') {
            Some(at) => {
                clean.push_str(HIDDEN);
                clean.push_str(&part[at..]);
            }
            None => clean.push_str(part),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_credentials_are_hidden_and_the_rest_stays() {
        for (text, expected) in [
            ("a plain sentence", "a plain sentence"),
            ("key jrt_live_abc_DEF123, and more", "key jrt_live_(hidden), and more"),
            ("signed with whsec_aB+/9=, and more", "signed with whsec_(hidden), and more"),
            ("jrt_live_a jrt_live_b", "jrt_live_(hidden) jrt_live_(hidden)"),
            ("postgres://me:pw@db/x?y=z", "postgres://(hidden)@db/x?y=z"),
            ("at http://h/p@q and https://u:p@w@h", "at http://h/p@q and https://(hidden)@h"),
        ] {
            assert_eq!(redacted(text), expected);
        }
    }
}
