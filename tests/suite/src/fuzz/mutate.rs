//! New inputs from old ones.

use crate::random::SplitMix64;

/// The longest input, in bytes: what is found in a longer one is found in a short one first.
const MAX_INPUT: usize = 16 * 1024;

/// The most mutations of one input.
const MAX_MUTATIONS: usize = 6;

/// Bytes that mean something in most formats.
const BYTES: &[u8] = b"\"\\{}[]:,.'=*\n\r\t -0195aefktx\0\x7f\x80\xc3\xff";

/// Makes inputs: the same for the same seed, dictionary and pools.
#[derive(Debug)]
pub(super) struct Mutator {
    pub(super) random: SplitMix64,
    dictionary: Vec<Vec<u8>>,
}

impl Mutator {
    pub(super) fn new(seed: u64, dictionary: Vec<Vec<u8>>) -> Self {
        Self { random: SplitMix64::new(seed), dictionary }
    }

    /// Mutates one input of a pool that is not empty.
    pub(super) fn mutate(&mut self, pool: &[Vec<u8>]) -> Vec<u8> {
        let mut input = self.random.one_of(pool).clone();
        for _ in 0..=self.random.below(MAX_MUTATIONS) {
            self.once(&mut input, pool);
        }
        input.truncate(MAX_INPUT);
        input
    }

    fn once(&mut self, input: &mut Vec<u8>, pool: &[Vec<u8>]) {
        let place = self.random.below(input.len() + 1);
        match self.random.below(10) {
            0 => {
                if let Some(byte) = input.get_mut(place) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(place) {
                    *byte = *self.random.one_of(BYTES);
                }
            }
            2 => input.insert(place, *self.random.one_of(BYTES)),
            3 => {
                let part = self.part(input);
                input.drain(part);
            }
            // Twice the same: duplicate keys, deeper nesting, longer lists.
            4 => {
                let part = self.part(input);
                let copy = input[part].to_vec();
                input.splice(place..place, copy);
            }
            5 => {
                let part = self.part(input);
                let copy = input[part.clone()].repeat(2 + self.random.below(30));
                input.splice(part, copy.into_iter().take(MAX_INPUT));
            }
            6 => {
                let other = self.random.one_of(pool);
                let part = self.part(other);
                let copy = other[part].to_vec();
                input.splice(place..place, copy);
            }
            // The head of one and the tail of another.
            7 => {
                let other = self.random.one_of(pool);
                let tail = self.random.below(other.len() + 1);
                input.truncate(place);
                input.extend_from_slice(&other[tail..]);
            }
            8 => {
                let number = match self.random.below(4) {
                    0 => "9223372036854775808".to_owned(),
                    1 => "1e309".to_owned(),
                    2 => self.random.below(300).to_string(),
                    _ => format!("-{}.{}", self.random.below(9), self.random.below(1000)),
                };
                input.splice(place..place, number.into_bytes());
            }
            _ => {
                if !self.dictionary.is_empty() {
                    let word = self.random.one_of(&self.dictionary).clone();
                    // Sometimes instead of what stands there.
                    let end = (place + self.random.below(2) * word.len()).min(input.len());
                    input.splice(place..end, word);
                }
            }
        }
        // Bounded at every step: repetition would otherwise grow it by thirty each time.
        input.truncate(MAX_INPUT);
    }

    /// A part of an input: short ones more often.
    fn part(&mut self, input: &[u8]) -> std::ops::Range<usize> {
        let start = self.random.below(input.len() + 1);
        let most = match self.random.below(3) {
            0 => 4,
            1 => 64,
            _ => input.len(),
        };
        let length = self.random.below(most.min(input.len() - start) + 1);
        start..start + length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_bounded_and_vary() {
        let pool = [Vec::new(), b"{\"f:a\":{}}".repeat(1_000)];
        let mut mutator = Mutator::new(3, vec![b"k:{".to_vec()]);
        let inputs: Vec<_> = (0..2_000).map(|_| mutator.mutate(&pool)).collect();
        assert!(inputs.iter().all(|input| input.len() <= MAX_INPUT));
        let distinct: std::collections::BTreeSet<_> = inputs.iter().collect();
        assert!(distinct.len() > 1_000, "only {} differ", distinct.len());
    }
}
