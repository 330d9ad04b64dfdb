//! Decides claims of integer arithmetic, such as `2 + 2 = 4`.

/// The maximum nesting of operators.
const MAX_DEPTH: usize = 32;

/// Whether the claim is true; `None` if it is not arithmetic, or overflows.
pub fn truth(claim: &str) -> Option<bool> {
    let text = claim.trim().trim_end_matches(['.', '!']).to_lowercase();
    let text = text.replace(" equals ", "=").replace(" is ", "=");
    let (left, right, wanted) = if let Some((left, right)) = text.split_once("!=") {
        (left, right, false)
    } else {
        let (left, right) = text.split_once('=')?;
        (left, right.strip_prefix('=').unwrap_or(right), true)
    };
    Some((value(left)? == value(right)?) == wanted)
}

/// The value of an expression of integers, `+ - * /` and parentheses.
fn value(text: &str) -> Option<i128> {
    let symbols: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
    // Two numbers side by side are not one number.
    let pieces: Vec<&str> = text.split_whitespace().collect();
    let glued = pieces.windows(2).any(|pair| {
        pair[0].ends_with(|c: char| c.is_ascii_digit())
            && pair[1].starts_with(|c: char| c.is_ascii_digit())
    });
    if glued {
        return None;
    }
    let mut reader = ArithmeticReader { symbols: &symbols, at: 0 };
    let result = reader.sum(0)?;
    (reader.at == symbols.len()).then_some(result)
}

struct ArithmeticReader<'a> {
    symbols: &'a [char],
    at: usize,
}

impl ArithmeticReader<'_> {
    fn sum(&mut self, depth: usize) -> Option<i128> {
        let mut total = self.product(depth)?;
        while let Some(sign @ ('+' | '-')) = self.peek() {
            self.at += 1;
            let next = self.product(depth)?;
            total = if sign == '+' { total.checked_add(next)? } else { total.checked_sub(next)? };
        }
        Some(total)
    }

    fn product(&mut self, depth: usize) -> Option<i128> {
        let mut total = self.atom(depth)?;
        while let Some(sign @ ('*' | '×' | '/')) = self.peek() {
            self.at += 1;
            let next = self.atom(depth)?;
            total = match sign {
                // A division with a remainder has no integer result.
                '/' if total.checked_rem(next)? == 0 => total.checked_div(next)?,
                '/' => return None,
                _ => total.checked_mul(next)?,
            };
        }
        Some(total)
    }

    fn atom(&mut self, depth: usize) -> Option<i128> {
        if MAX_DEPTH < depth {
            return None;
        }
        match self.peek()? {
            '-' => {
                self.at += 1;
                self.atom(depth + 1)?.checked_neg()
            }
            '(' => {
                self.at += 1;
                let inner = self.sum(depth + 1)?;
                (self.peek()? == ')').then(|| self.at += 1)?;
                Some(inner)
            }
            _ => self.number(),
        }
    }

    fn number(&mut self) -> Option<i128> {
        let digits: String =
            self.symbols[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        digits.parse().ok()
    }

    fn peek(&self) -> Option<char> {
        self.symbols.get(self.at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_integer_arithmetic_is_decided() {
        for (claim, expect) in [
            ("2 + 2 = 4", Some(true)),
            ("2+2=5", Some(false)),
            ("2 + 2 != 5.", Some(true)),
            ("(1 + 2) * -3 == -9", Some(true)),
            ("7 is 8", Some(false)),
            ("10 / 2 equals 5", Some(true)),
            ("10 / 4 = 2", None),
            ("1 / 0 = 1", None),
            ("1 2 = 12", None),
            ("the sky is blue", None),
            ("1 = 1 = 1", None),
            ("", None),
            ("99999999999999999999999999999999999999999 = 1", None),
        ] {
            assert_eq!(truth(claim), expect, "for {claim}");
        }
        assert_eq!(truth(&format!("{}1 = 1", "(".repeat(10_000))), None);
    }
}
