//! Codes that come by mail, and programs that wait to be let in.

use std::{fmt::Write as _, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::round::job::words;

words!(
    /// What a code that came by mail is for.
    LoginPurpose { Register => "register", Login => "login" }
);

words!(
    /// Where the login of a program stands.
    DeviceState {
        Pending => "pending",
        Approved => "approved",
        Denied => "denied",
        Used => "used",
    }
);

const MINUTE: i64 = 60 * 1_000_000;

/// How long a code is good.
pub const CODE_MICROS: i64 = 10 * MINUTE;
/// How long a code is not replaced by another, which bounds how many an address is sent.
pub const CODE_REST_MICROS: i64 = 5 * MINUTE;
/// How often one network can try the code of an address, right or wrong.
pub const CODE_TRIES: u32 = 5;
/// How often a code can be tried by all of them. It is so long that nobody finds it by then.
pub const CODE_TRIES_OF_ALL: u32 = 1_000;
pub const HOUR_MICROS: i64 = 60 * MINUTE;
/// How long a program waits to be let in, and how often it may ask.
pub const DEVICE_MICROS: i64 = 15 * MINUTE;
pub const DEVICE_INTERVAL_S: u32 = 5;
/// How many programs wait at a time.
pub const DEVICES_WAITING: u32 = 10_000;

/// Ten digits.
pub fn mail_code(bits: u128) -> String {
    format!("{:010}", bits % 10_000_000_000)
}

/// A code as somebody typed it, without what people put between digits.
pub fn typed(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).take(64).collect::<String>().to_uppercase()
}

/// What is stored of a code, under a salt of its own.
pub fn code_hash(salt: &str, email: &str, code: &str) -> String {
    format!("{salt}.{}", secret_hash(&format!("{salt}\n{email}\n{code}")))
}

/// The salt of what is stored.
pub fn salt_of(stored: &str) -> &str {
    stored.split('.').next().unwrap_or_default()
}

/// What is stored of a long secret, which needs no salt.
pub fn secret_hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

/// Letters that no one takes for another, and none that make words.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// What a person types to let a program in, such as `BCDF-GHJK`.
pub fn user_code(mut bits: u128) -> String {
    let mut letters = String::new();
    for index in 0..8 {
        if index == 4 {
            letters.push('-');
        }
        letters.push(char::from(LETTERS[usize::try_from(bits % 20).unwrap_or_default()]));
        bits /= 20;
    }
    letters
}

/// A code as it is stored, from how somebody typed it.
pub fn read_user_code(text: &str) -> Option<String> {
    let letters = typed(text);
    let is_formed = letters.len() == 8 && letters.bytes().all(|b| LETTERS.contains(&b));
    is_formed.then(|| format!("{}-{}", &letters[..4], &letters[4..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_code_reads_back_however_it_is_typed() {
        let code = user_code(0x0123_4567_89ab_cdef);
        assert_eq!(code.len(), 9);
        for typed in [code.clone(), code.to_lowercase(), code.replace('-', " ")] {
            assert_eq!(read_user_code(&typed), Some(code.clone()), "{typed}");
        }
        for wrong in ["", "BCDF", "AAAA-AAAA", "BCDF-GHJKL"] {
            assert_eq!(read_user_code(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_is_stored_of_a_code_tells_nothing_of_it() {
        let stored = code_hash("salt", "ann@example.com", "12345678");
        assert_eq!(salt_of(&stored), "salt");
        assert!(!stored.contains("12345678"));
        assert_ne!(stored, code_hash("salt", "bob@example.com", "12345678"));
        assert_eq!(mail_code(7).len(), 10);
        assert_eq!(typed(" 1234-5678 "), "12345678");
    }
}
