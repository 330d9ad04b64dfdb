//! Builds a small gzip text that unpacks to a large one.

/// The size of a run of white space before the text.
const BLOCK: usize = 258;
const BLOCKS: usize = 100 * 1024 * 1024 / BLOCK;

/// A gzip file of about 100 MiB of spaces followed by the text: valid, and valid JSON if the text
/// is.
///
/// A repetition of 258 bytes takes 13 bits, which compresses it about 150 times.
pub(super) fn bomb(text: &[u8]) -> Vec<u8> {
    let mut bits =
        BitWriter { bytes: vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255], held: 0, count: 0 };
    // The last block, with fixed codes.
    bits.push(0b011, 3);
    bits.literal(b' ');
    for _ in 0..BLOCKS {
        // Code 285: 258 bytes again; distance code 0: from one byte back.
        bits.push_code(0b1100_0101, 8);
        bits.push(0, 5);
    }
    for byte in text {
        bits.literal(*byte);
    }
    // Code 256: the end.
    bits.push(0, 7);
    bits.finish(checksum(text), 1 + BLOCK * BLOCKS + text.len())
}

fn checksum(text: &[u8]) -> [u8; 4] {
    let mut block = crc32fast::Hasher::new();
    block.update(&[b' '; BLOCK]);
    let mut whole = crc32fast::Hasher::new();
    whole.update(b" ");
    // Doubling the block, and adding it for each one bit of the count, takes few steps.
    let mut left = BLOCKS;
    while 0 < left {
        if left % 2 == 1 {
            whole.combine(&block);
        }
        let again = block.clone();
        block.combine(&again);
        left /= 2;
    }
    whole.update(text);
    whole.finalize().to_le_bytes()
}

/// A bit stream as deflate packs it: the lowest bit first.
struct BitWriter {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl BitWriter {
    fn push(&mut self, value: u32, width: u32) {
        self.held |= value << self.count;
        self.count += width;
        while 8 <= self.count {
            self.bytes.push(self.held.to_le_bytes()[0]);
            self.held >>= 8;
            self.count -= 8;
        }
    }

    /// Huffman codes are packed from their highest bit.
    fn push_code(&mut self, code: u32, width: u32) {
        self.push(code.reverse_bits() >> (32 - width), width);
    }

    fn literal(&mut self, byte: u8) {
        match byte {
            0..=143 => self.push_code(0x30 + u32::from(byte), 8),
            144.. => self.push_code(0x190 + u32::from(byte - 144), 9),
        }
    }

    fn finish(mut self, checksum: [u8; 4], length: usize) -> Vec<u8> {
        self.push(0, 7);
        self.bytes.extend_from_slice(&checksum);
        self.bytes.extend_from_slice(&length.to_le_bytes()[..4]);
        self.bytes
    }
}
