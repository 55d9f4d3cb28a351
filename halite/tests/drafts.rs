//! Texts with a draft, beside those without one. The models: `conformance/models/gguf_tiny.py`.

use std::ops::ControlFlow;

use halite::{
    CacheType, CancelToken, ChooseOn, Device, Drafted, ErrorKind, Generator, GeneratorOptions, RunOptions,
    Sampler, Sampling, Sequence, Stop,
};

use crate::common::{builder, device, repo};

fn generator(device: &Device, name: &str, options: GeneratorOptions) -> halite::Result<Generator> {
    let model = repo(&format!("compiler/tests/data/gguf/{name}.gguf"));
    builder(device).model(model).generator(options.context(64))
}

fn begun(generator: &Generator, length: u32) -> Sequence {
    let tokens: Vec<u32> = (0..length).map(|place| (place * 37 + 5) % 250 + 3).collect();
    let mut sequence = generator.sequence().unwrap();
    sequence.ignore_end(true);
    sequence.prompt(&tokens, &RunOptions::new()).unwrap();
    sequence
}

/// Tokens of `most`, of which the caller has enough after `last`; and what the sampler draws next.
fn written(sequence: &mut Sequence, sampling: &Sampling, most: usize, last: usize) -> (Vec<u32>, Stop, f64) {
    let mut told = Vec::new();
    let mut sampler = Sampler::new(sampling.clone());
    let stop = sequence.generate(&mut sampler, most, &RunOptions::new(), |piece| {
        told.push(piece.token);
        if told.len() == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (told, stop.unwrap(), sampler.fraction())
}

/// Greedy, drawn, drawn of all, and with penalties, which look at all tokens so far.
fn samplings() -> [Sampling; 4] {
    [
        Sampling::greedy(),
        Sampling { seed: 7, ..Sampling::default() },
        Sampling { seed: 3, top_k: 0, top_p: 1.0, min_p: 0.0, temperature: 1.0, ..Sampling::default() },
        Sampling { repeat_penalty: 1.3, ..Sampling::greedy() },
    ]
}

#[test]
fn texts_with_a_draft_are_those_without() {
    let Some(device) = device() else { return };
    // Drafts that are all right, drafts that nearly none is of, and those of a device that chooses.
    let cases = [
        ("llama", "llama", ChooseOn::Host),
        ("llama", "qwen3moe", ChooseOn::Host),
        ("gemma3", "gemma3", ChooseOn::Device),
    ];
    for (name, draft, place) in cases {
        let plain = generator(&device, name, GeneratorOptions::new()).unwrap();
        let writer = generator(&device, draft, GeneratorOptions::new().choose_on(place)).unwrap();
        let options = GeneratorOptions::new().draft(&writer).draft_tokens(6).choose_on(place);
        let drafted = generator(&device, name, options).unwrap();
        for sampling in samplings() {
            // To where the caller has enough, to a length, and to the end of the context; of drawn texts one, as a draw may be as near to
            // another token as devices round.
            let all = [(24, 13, 9), (24, 100, 5), (60, 100, 30)];
            let count = if sampling.is_greedy() { all.len() } else { 1 };
            for (most, last, length) in all.into_iter().take(count) {
                let mut wanted = begun(&plain, length);
                let mut found = begun(&drafted, length);
                let what = format!("{name} by {draft}, {sampling:?}");
                assert_eq!(
                    written(&mut found, &sampling, most, last),
                    written(&mut wanted, &sampling, most, last),
                    "{what}"
                );
                assert_eq!(found.tokens(), wanted.tokens(), "{what}");
                // What comes next is known as well.
                assert_eq!(
                    written(&mut found, &sampling, 5, 100),
                    written(&mut wanted, &sampling, 5, 100),
                    "{what}"
                );
            }
        }
        assert_eq!(drafted.session().loaded_versions(), 1, "all calls share the weights of one version");
    }
}

#[test]
fn right_drafts_are_taken() {
    let Some(device) = device() else { return };
    let writer = generator(&device, "llama", GeneratorOptions::new()).unwrap();
    let options = GeneratorOptions::new().draft(&writer).cache_types(CacheType::F16, CacheType::F16);
    let drafted = generator(&device, "llama", options).unwrap();
    let mut sequence = begun(&drafted, 5);
    assert_eq!(sequence.drafted(), Drafted::default());
    let alone = sequence.byte_len();
    written(&mut sequence, &Sampling::greedy(), 40, 100);
    let Drafted { tokens, taken, .. } = sequence.drafted();
    // Levels of 1, 3 and 7 tokens, and a bound at the end.
    assert!(tokens >= 25 && taken == tokens, "{tokens} {taken}");
    assert_eq!(sequence.byte_len(), 2 * alone, "the draft has caches of its own");
    // Another text: the draft follows.
    let mut other = sequence.fork().unwrap();
    sequence.truncate(20);
    written(&mut sequence, &Sampling::greedy(), 10, 100);
    written(&mut other, &Sampling::greedy(), 10, 100);
    assert_eq!(sequence.tokens()[..30], other.tokens()[..30]);
    assert!(sequence.drafted().taken > taken && other.drafted().taken > 0);
}

/// The model of llama with another token that ends texts.
fn ending_with(device: &Device, token: u32, options: GeneratorOptions) -> Generator {
    let mut file = std::fs::read(repo("compiler/tests/data/gguf/llama.gguf")).unwrap();
    let key = b"tokenizer.ggml.eos_token_id";
    let place = file.windows(key.len()).position(|part| part == key).unwrap();
    // Behind the key its type, 32 bits without a sign, and the number.
    let value = place + key.len() + 4;
    file[value..value + 4].copy_from_slice(&token.to_le_bytes());
    builder(device).model(file).generator(options.context(64)).unwrap()
}

#[test]
fn texts_end_where_the_model_ends_them() {
    let Some(device) = device() else { return };
    let greedy = Sampling::greedy();
    let plain = generator(&device, "llama", GeneratorOptions::new()).unwrap();
    let (text, ..) = written(&mut begun(&plain, 5), &greedy, 30, 100);
    // Not the first of a call that looks at drafts.
    let place = (4..30).find(|place| !text[..*place].contains(&text[*place])).unwrap();
    let writer = ending_with(&device, text[place], GeneratorOptions::new());
    let drafted = ending_with(&device, text[place], GeneratorOptions::new().draft(&writer));
    let mut sequence = begun(&drafted, 5);
    sequence.ignore_end(false);
    let (told, stop, _) = written(&mut sequence, &greedy, 30, 100);
    assert_eq!((&told[..], stop), (&text[..place], Stop::End));
    assert_eq!(sequence.tokens()[5..], text[..place]);
    sequence.ignore_end(true);
    assert_eq!(written(&mut sequence, &greedy, 6, 100).0, text[place..place + 6]);
}

#[test]
fn cancelled_texts_with_a_draft_go_on() {
    let Some(device) = device() else { return };
    let plain = generator(&device, "llama", GeneratorOptions::new()).unwrap();
    let drafted = generator(&device, "llama", GeneratorOptions::new().draft(&plain)).unwrap();
    let mut sequence = begun(&drafted, 5);
    let cancel = CancelToken::new();
    let mut told = Vec::new();
    let mut sampler = Sampler::new(Sampling::greedy());
    let options = RunOptions::new().cancel(&cancel);
    let stop = sequence.generate(&mut sampler, 30, &options, |piece| {
        told.push(piece.token);
        if told.len() == 6 {
            cancel.cancel();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(stop.unwrap_err().kind(), ErrorKind::Cancelled);
    let before = sequence.tokens().to_vec();
    written(&mut sequence, &Sampling::greedy(), 20, 100);
    let mut wanted = begun(&plain, 5);
    written(&mut wanted, &Sampling::greedy(), before.len() - 5 + 20, 100);
    assert_eq!(sequence.tokens(), wanted.tokens());
}

#[test]
fn drafts_that_do_not_fit_are_refused() {
    let Some(device) = device() else { return };
    let refused = |name: &str, options: GeneratorOptions| {
        let error = generator(&device, name, options).unwrap_err();
        (error.kind(), error.to_string())
    };
    let writer = generator(&device, "llama", GeneratorOptions::new()).unwrap();
    let options = || GeneratorOptions::new().draft(&writer);
    let (kind, text) = refused("gemma3", options());
    assert!(kind == ErrorKind::InvalidInput && text.contains("token 0 is '<unk>' there"), "{text}");
    for most in [0, 16] {
        let (_, text) = refused("llama", options().draft_tokens(most));
        assert!(text.contains("there may be 1 to 15"), "{text}");
    }
    let (_, text) = refused("llama", GeneratorOptions::new().draft_tokens(3));
    assert!(text.contains("no model that drafts"), "{text}");
    let both = generator(&device, "llama", options()).unwrap();
    let (_, text) = refused("llama", GeneratorOptions::new().draft(&both));
    assert!(text.contains("a draft of its own"), "{text}");
}
