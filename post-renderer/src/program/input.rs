//! Standard input, whole and bounded.

use std::io::Read;

use crate::MAX_INPUT;

/// Room for the manifests of most charts, in bytes.
const MOST_CHARTS: usize = 16 << 10;

/// Reads everything; more than [`MAX_INPUT`] is an error.
pub(super) fn read(from: impl Read) -> Result<Vec<u8>, String> {
    let mut input = Vec::with_capacity(MOST_CHARTS);
    let limit = u64::try_from(MAX_INPUT).unwrap_or(u64::MAX).saturating_add(1);
    from.take(limit)
        .read_to_end(&mut input)
        .map_err(|error| format!("read the manifests from standard input: {error}"))?;
    if input.len() > MAX_INPUT {
        return Err(format!("read the manifests: they are larger than {} MiB", MAX_INPUT >> 20));
    }
    Ok(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_without_end_is_refused() {
        let error = read(std::io::repeat(b'a')).unwrap_err();
        assert!(error.contains("256 MiB"), "{error}");
    }

    #[test]
    fn an_input_is_read_whole() {
        assert_eq!(read(&b"a: 1\n"[..]).unwrap(), b"a: 1\n");
    }
}
