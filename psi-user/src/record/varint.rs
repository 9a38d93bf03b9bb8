//! Numbers in as few bytes as they need: LEB128, seven bits a byte, the lowest first.

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Appends a number that may be negative; small ones either way are short (zigzag).
pub(super) fn put_signed(bytes: &mut Vec<u8>, number: i64) {
    put(bytes, (number << 1 ^ number >> 63).cast_unsigned());
}

/// Reads from the front of a slice, and never past its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

/// The content is not what the format says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub(super) &'static str);

impl<'a> Reader<'a> {
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (first, rest) = self.0.split_at_checked(length).ok_or(Malformed("it ends early"))?;
        self.0 = rest;
        Ok(first)
    }

    pub(super) fn number(&mut self) -> Result<u64, Malformed> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Malformed("a number is too large"))
    }

    pub(super) fn signed(&mut self) -> Result<i64, Malformed> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A number that a `u32` can hold.
    pub(super) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed("a number is too large"))
    }

    /// A number of things that take at least `size` bytes each: so never more than there can be.
    pub(super) fn count(&mut self, size: usize) -> Result<usize, Malformed> {
        let count = usize::try_from(self.number()?).map_err(|_| Malformed("a number is too large"))?;
        if count > self.0.len() / size.max(1) {
            return Err(Malformed("it ends early"));
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_come_back(number: u64, signed: i64, rest: Vec<u8>) {
            let mut bytes = Vec::new();
            put(&mut bytes, number);
            put_signed(&mut bytes, signed);
            bytes.extend(&rest);
            let mut reader = Reader(&bytes);
            prop_assert_eq!(reader.number(), Ok(number));
            prop_assert_eq!(reader.signed(), Ok(signed));
            prop_assert_eq!(reader.0, &rest[..]);
        }
    }

    #[test]
    fn too_large_and_torn_numbers_are_refused() {
        assert_eq!(Reader(&[0xff; 9]).number(), Err(Malformed("it ends early")));
        let mut largest = [0xff; 10];
        largest[9] = 1;
        assert_eq!(Reader(&largest).number(), Ok(u64::MAX));
        largest[9] = 2;
        assert!(Reader(&largest).number().is_err());
        assert!(Reader(&[0x80; 20]).number().is_err());
        assert!(Reader(&[0xff, 0xff, 0xff, 0xff, 0x7f]).small().is_err());
        assert!(Reader(&[3, 0, 0]).count(1).is_err());
        assert_eq!(Reader(&[2, 0, 0]).count(1), Ok(2));
    }
}
