//! Login codes sent by mail, and device logins that wait for approval.

use std::{fmt::Write as _, str::FromStr};

use sha2::{Digest as _, Sha256};

use crate::round::job::words;

words!(
    /// The purpose of a code sent by mail.
    LoginPurpose { Register => "register", Login => "login" }
);

words!(
    /// The state of a device login.
    DeviceState {
        Pending => "pending",
        Approved => "approved",
        Denied => "denied",
        Used => "used",
    }
);

const MINUTE: i64 = 60 * 1_000_000;

/// How long a code is valid.
pub const CODE_MICROS: i64 = 10 * MINUTE;
/// How long a code cannot be replaced by a new one, which limits the mail to one address.
pub const CODE_REST_MICROS: i64 = 5 * MINUTE;
/// How many times one network may try the code of an address, right or wrong.
pub const CODE_TRIES: u32 = 5;
/// How many times all networks together may try a code. The code is long enough that guessing it
/// within these tries is hopeless.
pub const CODE_TRIES_OF_ALL: u32 = 1_000;
/// One hour.
pub const HOUR_MICROS: i64 = 60 * MINUTE;
/// How long a device login waits for approval.
pub const DEVICE_MICROS: i64 = 15 * MINUTE;
/// The minimum interval between two polls of a device login.
pub const DEVICE_INTERVAL_S: u32 = 5;
/// How many device logins may wait in the installation.
pub const DEVICES_WAITING: u32 = 10_000;

/// A mail code of ten digits.
pub fn mail_code(bits: u128) -> String {
    format!("{:010}", bits % 10_000_000_000)
}

/// A code as a person typed it, without separators and in upper case.
pub fn typed(code: &str) -> String {
    code.chars().filter(char::is_ascii_alphanumeric).take(64).collect::<String>().to_uppercase()
}

/// The stored form of a code, with a salt of its own.
pub fn code_hash(salt: &str, email: &str, code: &str) -> String {
    format!("{salt}.{}", secret_hash(&format!("{salt}\n{email}\n{code}")))
}

/// The salt of a stored code.
pub fn salt_of(stored: &str) -> &str {
    stored.split('.').next().unwrap_or_default()
}

/// The stored form of a long secret, which needs no salt.
pub fn secret_hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _written = write!(text, "{byte:02x}");
        text
    })
}

/// Letters that are not mistaken for each other, without vowels, so that codes form no words.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// The code that a person types to approve a device, such as `BCDF-GHJK`.
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

/// The stored form of a user code, however it was typed.
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
    fn the_stored_form_of_a_code_does_not_reveal_it() {
        let stored = code_hash("salt", "ann@example.com", "12345678");
        assert_eq!(salt_of(&stored), "salt");
        assert!(!stored.contains("12345678"));
        assert_ne!(stored, code_hash("salt", "bob@example.com", "12345678"));
        assert_eq!(mail_code(7).len(), 10);
        assert_eq!(typed(" 1234-5678 "), "12345678");
    }
}
