//! Numbers and tokens of the protocols.

/// A decimal number without a sign.
pub fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0_u64, |sum, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A decimal number with or without a sign.
pub fn signed(text: &[u8]) -> Option<i64> {
    match text.split_first()? {
        (b'-', digits) => i64::try_from(unsigned(digits)?).ok().map(|number| -number),
        (b'+', digits) => i64::try_from(unsigned(digits)?).ok(),
        _ => i64::try_from(unsigned(text)?).ok(),
    }
}

/// A time in seconds, which memcached keeps in 32 bits with a sign.
pub fn time(text: &[u8]) -> Option<i64> {
    signed(text).filter(|time| i32::try_from(*time).is_ok())
}

/// A number of 32 bits.
pub fn word(text: &[u8]) -> Option<u32> {
    u32::try_from(unsigned(text)?).ok()
}

/// Appends a number in decimal digits.
pub fn push(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// The words of a line, which spaces separate.
pub fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&byte| byte == b' ').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_written_exactly() {
        for number in [0, 9, 10, 12_345, u64::MAX] {
            let mut out = Vec::new();
            push(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(unsigned(&out), Some(number));
        }
        for text in ["", "1a", "-1", " 1", "18446744073709551616", "111111111111111111111"] {
            assert_eq!(unsigned(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!((signed(b"-12"), signed(b"+5"), signed(b"-")), (Some(-12), Some(5), None));
        assert_eq!(words(b"  a bc  d ").collect::<Vec<_>>(), [&b"a"[..], b"bc", b"d"]);
    }
}
