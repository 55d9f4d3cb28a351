//! Models that attend to rows which stand for groups of tokens (`deepseek4`): caches have these rows, of which a call makes its own. The
//! model: `conformance/models/gguf_families.py`.

use halite::{CacheType, Device, Generator, GeneratorOptions, RunOptions, Sequence};

use crate::common::{builder, device, repo};

/// Tokens that there is room for: more than two groups of 128.
const CONTEXT: usize = 300;

fn generator(device: &Device, keys: CacheType, values: CacheType) -> Generator {
    let options = GeneratorOptions::new().context(CONTEXT).cache_types(keys, values).batch(2);
    let model = repo("compiler/tests/data/gguf/deepseek4.gguf");
    builder(device).model(model).generator(options).unwrap()
}

fn tokens(number: usize, length: usize) -> Vec<u32> {
    (0..length).map(|place| ((place * 37 + place / 7 * 11 + number * 101 + 5) % 250 + 3) as u32).collect()
}

fn begun(generator: &Generator, tokens: &[u32]) -> Sequence {
    let mut sequence = generator.sequence().unwrap();
    sequence.prompt(tokens, &RunOptions::new()).unwrap();
    sequence
}

fn near(what: &str, found: &[f32], wanted: &[f32], most: f32) {
    let apart = found.iter().zip(wanted).map(|(a, b)| (a - b).abs());
    let largest = apart.fold(0.0, |most, apart| if apart.is_nan() { f32::NAN } else { apart.max(most) });
    assert!(found.len() == wanted.len() && largest < most, "{what}: {largest}");
}

#[test]
fn rows_of_groups_are_those_of_the_same_tokens_however_they_came() {
    let Some(device) = device() else { return };
    for (types, most) in [
        ([CacheType::F16, CacheType::F16], 0.03),
        // Codes are those of the same numbers but for rounding.
        ([CacheType::Q8_0, CacheType::Q8_0], 0.2),
        ([CacheType::Q8_0, CacheType::Q4_0], 0.4),
    ] {
        let generator = generator(&device, types[0], types[1]);
        let (options, text) = (RunOptions::new(), tokens(0, 270));
        let whole = begun(&generator, &text).logits().to_vec();
        // In pieces that begin and end within groups, of both kinds.
        let mut pieces = generator.sequence().unwrap();
        let mut at = 0;
        for length in [1, 2, 1, 33, 90, 3, 64, 7, 32, 36, 1] {
            pieces.append(&text[at..at + length], &options).unwrap();
            at += length;
        }
        assert_eq!(at, text.len());
        near(&format!("pieces {types:?}"), pieces.logits(), &whole, most);
        // Back into a group, on with other tokens, and with the first ones again.
        for cut in [257, 256, 255, 130, 3, 2] {
            let other = [&text[..cut], &tokens(1, 9)[..]].concat();
            assert_eq!(pieces.prompt(&other, &options).unwrap(), cut);
            near(&format!("cut {cut} {types:?}"), pieces.logits(), begun(&generator, &other).logits(), most);
            pieces.prompt(&text, &options).unwrap();
            near(&format!("back {cut} {types:?}"), pieces.logits(), &whole, most);
        }
    }
}

#[test]
fn sequences_that_write_together_keep_their_own_rows() {
    let Some(device) = device() else { return };
    for types in [[CacheType::F16; 2], [CacheType::Q8_0; 2]] {
        let generator = generator(&device, types[0], types[1]);
        let (options, texts) = (RunOptions::new(), [tokens(0, 140), tokens(1, 139)]);
        let begins = [120, 5];
        let mut own: Vec<Sequence> =
            texts.iter().zip(begins).map(|(text, begin)| begun(&generator, &text[..begin])).collect();
        let saved = own[0].save().unwrap();
        for step in 0..16 {
            let tokens = (0..2).map(|number| texts[number][begins[number] + step]);
            let mut members: Vec<_> = own.iter_mut().zip(tokens).collect();
            // One that takes no part in a step keeps what it has.
            members.truncate(if step % 5 == 4 { 1 } else { 2 });
            let alone = members.len() == 1;
            generator.append_each(&mut members, &options).unwrap();
            if alone {
                own[1].append(&[texts[1][begins[1] + step]], &options).unwrap();
            }
        }
        for (number, sequence) in own.iter().enumerate() {
            let fresh = begun(&generator, &texts[number][..begins[number] + 16]);
            near(&format!("{number} {types:?}"), sequence.logits(), fresh.logits(), 0.2);
        }
        let mut loaded = generator.sequence().unwrap();
        loaded.load(&saved).unwrap();
        loaded.append(&texts[0][120..136], &options).unwrap();
        near(&format!("loaded {types:?}"), loaded.logits(), own[0].logits(), 0.2);
    }
}
