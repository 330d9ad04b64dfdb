//! Reads lines of standard input, up to the size of the largest request that a server accepts.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Maximum size of a body that a server accepts.
const LONGEST: usize = 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// A line that is not blank.
    Text(Vec<u8>),
    TooLong,
    End,
}

/// Keeps the beginning of a line, so waiting for the rest can be interrupted.
pub(super) struct LineReader<R> {
    reader: R,
    begun: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, begun: Vec::new(), is_too_long: false }
    }

    /// The next line. The last line needs no line break.
    pub(super) async fn next(&mut self) -> io::Result<InputLine> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let (length, has_ended) = (chunk.len(), chunk.is_empty());
            let part = chunk.get(..end.unwrap_or(length)).unwrap_or_default();
            if self.begun.len() + part.len() <= LONGEST {
                self.begun.extend_from_slice(part);
            } else {
                self.is_too_long = true;
            }
            self.reader.consume(end.map_or(length, |at| at + 1));
            if end.is_none() && !has_ended {
                continue;
            }
            let line = std::mem::take(&mut self.begun);
            if std::mem::take(&mut self.is_too_long) {
                return Ok(InputLine::TooLong);
            }
            if !line.trim_ascii().is_empty() {
                return Ok(InputLine::Text(line));
            }
            if has_ended {
                return Ok(InputLine::End);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn blank_lines_are_skipped_and_long_lines_are_dropped() {
        let long = "x".repeat(LONGEST + 1);
        let text = format!("one\n\n \r\n{long}\ntwo");
        let mut lines = LineReader::new(tokio::io::BufReader::with_capacity(7, text.as_bytes()));
        let line = |text: &str| InputLine::Text(text.as_bytes().to_vec());
        assert_eq!(lines.next().await.unwrap(), line("one"));
        assert_eq!(lines.next().await.unwrap(), InputLine::TooLong);
        assert_eq!(lines.next().await.unwrap(), line("two"));
        assert_eq!(lines.next().await.unwrap(), InputLine::End);
        assert_eq!(lines.next().await.unwrap(), InputLine::End);
    }
}
