//! Recognizes image formats by their first bytes.

use bytes::Bytes;

/// A fetched image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedImage {
    /// The media type that its bytes show.
    pub mime: &'static str,
    pub(super) bytes: Bytes,
}

/// The image, if the bytes are one and match the declared type.
pub(super) fn recognised(declared: &str, bytes: Bytes) -> Option<FetchedImage> {
    let mime = mime(&bytes)?;
    let declared = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // An old and wrong name that many servers still use.
    let declared = if declared == "image/jpg" { "image/jpeg" } else { declared.as_str() };
    (declared == mime).then_some(FetchedImage { mime, bytes })
}

fn mime(bytes: &[u8]) -> Option<&'static str> {
    let begins = |magic: &[u8]| bytes.starts_with(magic);
    if begins(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if begins(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if begins(b"GIF87a") || begins(b"GIF89a") {
        Some("image/gif")
    } else if begins(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(declared: &str, bytes: &'static [u8]) -> Option<&'static str> {
        recognised(declared, Bytes::from_static(bytes)).map(|image| image.mime)
    }

    #[test]
    fn bytes_and_declaration_must_agree() {
        const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0";
        assert_eq!(seen("image/png", PNG), Some("image/png"));
        assert_eq!(seen("Image/PNG; q=1", PNG), Some("image/png"));
        assert_eq!(seen("image/jpg", b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(seen("image/gif", b"GIF89a.."), Some("image/gif"));
        assert_eq!(seen("image/webp", b"RIFF\0\0\0\0WEBPVP8 "), Some("image/webp"));
        for (declared, bytes) in [
            ("image/jpeg", PNG),
            ("", PNG),
            ("text/html", PNG),
            ("image/png", b"<html>".as_slice()),
            ("image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
            ("image/webp", b"RIFF\0\0\0\0WAVE"),
            ("image/png", b""),
        ] {
            assert_eq!(seen(declared, bytes), None, "{declared}");
        }
    }
}
