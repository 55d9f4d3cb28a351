//! Several sequences that write together, beside each alone. The models: `conformance/models/gguf_tiny.py`.

use std::ops::ControlFlow;

use halite::{
    CacheType, CancelToken, ChooseOn, Device, ErrorKind, Generator, GeneratorOptions, Next, RunOptions,
    Sampler, Sampling, Sequence, Stop,
};

use crate::common::{builder, device, repo};

fn generator(device: &Device, name: &str, options: GeneratorOptions) -> Generator {
    let model = repo(&format!("compiler/tests/data/gguf/{name}.gguf"));
    builder(device).model(model).generator(options.context(64)).unwrap()
}

/// A prompt of so many tokens.
fn prompt(number: usize, length: usize) -> Vec<u32> {
    (0..length).map(|place| ((place * 37 + number * 101 + 5) % 250 + 3) as u32).collect()
}

/// A sequence behind a prompt, which does not end by itself.
fn begun(generator: &Generator, tokens: &[u32]) -> Sequence {
    let mut sequence = generator.sequence().unwrap();
    sequence.ignore_end(true);
    sequence.prompt(tokens, &RunOptions::new()).unwrap();
    sequence
}

/// What a sequence writes alone.
fn alone(generator: &Generator, tokens: &[u32], sampling: &Sampling, most: usize) -> Vec<u32> {
    let mut sequence = begun(generator, tokens);
    let mut told = Vec::new();
    let mut sampler = Sampler::new(sampling.clone());
    let stop = sequence.generate(&mut sampler, most, &RunOptions::new(), |piece| {
        told.push(piece.token);
        ControlFlow::Continue(())
    });
    stop.unwrap();
    told
}

/// A text with its sampler.
struct Text {
    sequence: Sequence,
    sampler: Sampler,
    told: Vec<u32>,
}

impl Text {
    fn new(sequence: Sequence, sampling: &Sampling) -> Text {
        Text { sequence, sampler: Sampler::new(sampling.clone()), told: Vec::new() }
    }
}

/// So many steps of all.
fn write(generator: &Generator, texts: &mut [&mut Text], steps: usize) {
    for _ in 0..steps {
        let mut members: Vec<_> =
            texts.iter_mut().map(|text| (&mut text.sequence, &mut text.sampler)).collect();
        let next = generator.step(&mut members, &RunOptions::new()).unwrap();
        for (text, next) in texts.iter_mut().zip(next) {
            match next {
                Next::Token(token) => text.told.push(token),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn steps_of_several_sequences_are_those_of_each() {
    let Some(device) = device() else { return };
    let lengths = [3, 40, 17, 8];
    let places = [
        ("llama", ChooseOn::Host),
        ("gemma3", ChooseOn::Device),
        ("qwen3moe", ChooseOn::Device),
        ("lfm2", ChooseOn::Host),
        ("qwen35", ChooseOn::Device),
    ];
    for (name, place) in places {
        let single = generator(&device, name, GeneratorOptions::new());
        let several = generator(&device, name, GeneratorOptions::new().batch(4).choose_on(place));
        assert_eq!((single.batch(), several.batch()), (1, 4));
        for sampling in [Sampling::greedy(), Sampling { seed: 7, ..Sampling::default() }] {
            let wanted =
                |number: usize, steps| alone(&single, &prompt(number, lengths[number]), &sampling, steps);
            let mut texts: Vec<Text> = (0..4)
                .map(|number| Text::new(begun(&several, &prompt(number, lengths[number])), &sampling))
                .collect();
            let [a, b, c, d] = &mut texts[..] else { panic!("four texts") };
            // All; the two in the middle, and those that are not neighbours; one alone; who was away comes back.
            write(&several, &mut [a, b, c, d], 4);
            write(&several, &mut [c, b], 3);
            write(&several, &mut [d, a], 3);
            write(&several, &mut [b], 2);
            write(&several, &mut [a, d, c, b], 4);
            for (number, text) in texts.iter().enumerate() {
                assert_eq!(text.told, wanted(number, text.told.len()), "{name}, text {number}, {sampling:?}");
                assert_eq!(text.sequence.tokens()[lengths[number]..], text.told);
            }
        }
        assert_eq!(several.session().loaded_versions(), 1, "all calls share the weights of one version");
    }
}

#[test]
fn logits_of_several_sequences_are_those_of_each() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    for types in [[CacheType::F16; 2], [CacheType::Q8_0, CacheType::Q4_0]] {
        let of = |batch| {
            let wanted = GeneratorOptions::new().cache_types(types[0], types[1]).batch(batch);
            generator(&device, "qwen3", wanted)
        };
        let (single, several) = (of(1), of(3));
        let [mut here, mut there] = [&single, &several]
            .map(|generator| [4, 30, 11].map(|length| begun(generator, &prompt(length, length))));
        for step in 0..6u32 {
            let tokens = [step + 3, 2 * step + 9, 77 - step];
            let mut members: Vec<_> = there.iter_mut().zip(tokens).collect();
            several.append_each(&mut members, &options).unwrap();
            for ((one, other), token) in here.iter_mut().zip(&there).zip(tokens) {
                one.append(&[token], &options).unwrap();
                let pairs = one.logits().iter().zip(other.logits());
                let largest = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(other.logits().len() == one.logits().len() && largest < 2e-3, "{types:?}: {largest}");
            }
        }
    }
}

#[test]
fn sequences_come_and_go_between_steps() {
    let Some(device) = device() else { return };
    let greedy = Sampling::greedy();
    let options = RunOptions::new();
    let single = generator(&device, "llama", GeneratorOptions::new());
    let several = generator(&device, "llama", GeneratorOptions::new().batch(3));
    let new = |number: usize| Text::new(begun(&several, &prompt(number, 5 + number)), &greedy);
    let mut texts: Vec<Text> = (0..3).map(new).collect();
    let memory = texts[0].sequence.byte_len();
    write(&several, &mut texts.iter_mut().collect::<Vec<_>>(), 3);
    // A fourth and a fifth have no place in the batch; they write all the same.
    texts.extend((3..5).map(new));
    write(&several, &mut texts.iter_mut().collect::<Vec<_>>(), 3);
    // The first goes; its place is that of another, which finds nothing of it.
    let gone = texts.remove(0);
    assert_eq!(gone.told, alone(&single, &prompt(0, 5), &greedy, 6));
    drop(gone);
    let mut late = new(7);
    assert_eq!(late.sequence.byte_len(), memory);
    let saved = several.sequence().unwrap().save().unwrap();
    assert!(saved.len() < 400, "a sequence without tokens has no caches yet");
    write(&several, &mut [&mut late], 1);
    texts.push(late);
    write(&several, &mut texts.iter_mut().collect::<Vec<_>>(), 3);
    for (text, number) in texts.iter().zip([1, 2, 3, 4, 7]) {
        let wanted = alone(&single, &prompt(number, 5 + number), &greedy, text.told.len());
        assert_eq!(text.told, wanted, "text {number}");
    }
    // Copies and what was saved take part, and so does a sequence that was cut.
    let saved = texts[1].sequence.save().unwrap();
    let fork = Text::new(texts[0].sequence.fork().unwrap(), &greedy);
    texts.truncate(2);
    let mut other = Text::new(several.sequence().unwrap(), &greedy);
    other.sequence.ignore_end(true);
    other.sequence.load(&saved).unwrap();
    texts[1].sequence.truncate(4);
    texts[1].sequence.prompt(&prompt(2, 6), &options).unwrap();
    texts[1].told.clear();
    texts.extend([fork, other]);
    write(&several, &mut texts.iter_mut().collect::<Vec<_>>(), 5);
    let long = |number: usize, length: usize| alone(&single, &prompt(number, length), &greedy, 14);
    assert_eq!(texts[0].told, long(1, 6));
    assert_eq!(texts[1].told, alone(&single, &prompt(2, 6), &greedy, 5));
    assert_eq!(texts[2].told, long(1, 6)[9..]);
    assert_eq!(texts[3].told, long(2, 7)[9..]);
    // What one writes alone goes on from there, also where the device chooses.
    let wanted = alone(&single, &prompt(1, 6), &greedy, 20);
    assert_eq!(written_alone(&mut texts[0].sequence, &greedy, 6), wanted[14..]);
}

/// So many tokens that a sequence writes by itself.
fn written_alone(sequence: &mut Sequence, sampling: &Sampling, count: usize) -> Vec<u32> {
    let mut tokens = Vec::new();
    sequence
        .generate(&mut Sampler::new(sampling.clone()), count, &RunOptions::new(), |piece| {
            tokens.push(piece.token);
            ControlFlow::Continue(())
        })
        .unwrap();
    tokens
}

#[test]
fn steps_end_and_fail_as_those_of_one_sequence() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let several = generator(&device, "llama", GeneratorOptions::new().batch(2).choose_on(ChooseOn::Device));
    let mut full = Text::new(begun(&several, &prompt(1, 63)), &Sampling::greedy());
    let mut other = Text::new(begun(&several, &prompt(2, 5)), &Sampling { seed: 3, ..Sampling::default() });
    let step = |all: &mut [&mut Text], options: &RunOptions| {
        let mut members: Vec<_> =
            all.iter_mut().map(|text| (&mut text.sequence, &mut text.sampler)).collect();
        several.step(&mut members, options)
    };
    let next = step(&mut [&mut full, &mut other], &options).unwrap();
    assert!(matches!(next[..], [Next::Token(_), Next::Token(_)]));
    let next = step(&mut [&mut full, &mut other], &options).unwrap();
    assert!(matches!(next[..], [Next::Stop(Stop::Context), Next::Token(_)]), "{next:?}");
    assert_eq!((full.sequence.tokens().len(), other.sequence.tokens().len()), (64, 7));
    // A token that ends the text is not added.
    full.sequence.truncate(60);
    full.sequence.ignore_end(false);
    let end = (0..several.vocabulary_len() as u32).find(|token| several.is_end(*token)).unwrap();
    let next = several.append_each(&mut [(&mut full.sequence, end), (&mut other.sequence, 9)], &options);
    next.unwrap();
    assert!(full.sequence.tokens().len() == 61 && !full.sequence.logits().is_empty());
    // Nothing counts of a step that was ended, not even the random numbers.
    let cancel = CancelToken::new();
    cancel.cancel();
    let before = (full.sequence.tokens().to_vec(), other.sequence.tokens().to_vec());
    let failed = step(&mut [&mut full, &mut other], &RunOptions::new().cancel(&cancel)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::Cancelled);
    assert_eq!((full.sequence.tokens().to_vec(), other.sequence.tokens().to_vec()), before);
    let mut again = Text::new(other.sequence.fork().unwrap(), &Sampling::greedy());
    again.sampler = other.sampler.clone();
    let first = step(&mut [&mut full, &mut other], &options).unwrap()[1];
    assert_eq!(step(&mut [&mut again], &options).unwrap()[0], first);
    let refused = |result: halite::Result<()>, text: &str| {
        let error = result.unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidInput && error.message().contains(text), "{error}");
    };
    let mut empty = Text::new(several.sequence().unwrap(), &Sampling::greedy());
    refused(step(&mut [&mut empty, &mut other], &options).map(drop), "give it a prompt");
    let stranger = generator(&device, "llama", GeneratorOptions::new());
    let mut strange = Text::new(begun(&stranger, &prompt(1, 5)), &Sampling::greedy());
    refused(step(&mut [&mut strange, &mut other], &options).map(drop), "this is another");
    refused(several.append_each(&mut [(&mut other.sequence, 9999)], &options), "there is no token 9999");
    full.sequence.prompt(&prompt(4, 64), &options).unwrap();
    refused(several.append_each(&mut [(&mut full.sequence, 3)], &options), "do not fit");
}

#[test]
fn steps_under_way_are_nobodys_business() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let single = generator(&device, "llama", GeneratorOptions::new());
    let several = generator(&device, "llama", GeneratorOptions::new().batch(4).choose_on(ChooseOn::Device));
    let drawn = |seed| Sampling { seed, ..Sampling::default() };
    let penalized = Sampling { repeat_penalty: 1.3, ..drawn(9) };
    // Of one step each has its own way to choose; the last leaves all of it to the host.
    let ways = [Sampling::greedy(), drawn(5), drawn(6), penalized];
    let wanted = |number: usize, count| alone(&single, &prompt(number, 9 + number), &ways[number], count);
    let new = |number: usize| Text::new(begun(&several, &prompt(number, 9 + number)), &ways[number]);
    let mut texts: Vec<Text> = (0..4).map(new).collect();
    let [a, b, c, d] = &mut texts[..] else { panic!("four texts") };
    write(&several, &mut [a, b, c], 5);
    write(&several, &mut [a, b, c, d], 2);
    write(&several, &mut [c, a, b], 4);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(text.told, wanted(number, text.told.len()), "text {number}");
    }
    // What a program does with one of them is as if nothing were under way: the others go on.
    let [a, b, c, _] = &mut texts[..] else { panic!("four texts") };
    write(&several, &mut [a, b, c], 2);
    assert!(a.sequence.logits().is_empty(), "the device chooses, and nobody has read them");
    let (fork, saved) = (a.sequence.fork().unwrap(), b.sequence.save().unwrap());
    let mut copies = [Text::new(fork, &ways[0]), Text::new(several.sequence().unwrap(), &ways[1])];
    copies[1].sequence.ignore_end(true);
    copies[1].sequence.load(&saved).unwrap();
    copies[1].sampler = b.sampler.clone();
    c.sequence.truncate(c.sequence.tokens().len() - 3);
    c.sequence.append(&[40, 41], &options).unwrap();
    let (before, sampler) = (c.sequence.tokens().to_vec(), c.sampler.clone());
    write(&several, &mut [a, b, c], 3);
    for (text, number) in [(&*a, 0), (&*b, 1)] {
        assert_eq!(text.told, wanted(number, text.told.len()), "text {number}");
    }
    for (copy, number) in copies.iter_mut().zip([0, 1]) {
        write(&several, &mut [copy], 4);
        assert_eq!(copy.told, wanted(number, 17)[13..], "the copy of text {number}");
    }
    let mut again = Text::new(begun(&single, &before), &ways[2]);
    again.sampler = sampler;
    write(&single, &mut [&mut again], 3);
    assert_eq!(again.told, c.told[c.told.len() - 3..]);
}

#[test]
fn another_sampler_than_the_device_drew_for_has_its_own_tokens() {
    let Some(device) = device() else { return };
    let single = generator(&device, "llama", GeneratorOptions::new());
    let several = generator(&device, "llama", GeneratorOptions::new().batch(2).choose_on(ChooseOn::Device));
    let drawn = |seed| Sampling { seed, ..Sampling::default() };
    let [mut a, mut b] = [0, 1].map(|own| Text::new(begun(&several, &prompt(own, 9)), &drawn(own as u64)));
    write(&several, &mut [&mut a, &mut b], 3);
    b.sampler = Sampler::new(drawn(77));
    let mut other = Text::new(begun(&single, b.sequence.tokens()), &drawn(77));
    write(&single, &mut [&mut other], 4);
    b.told.clear();
    write(&several, &mut [&mut a, &mut b], 4);
    assert_eq!(b.told, other.told);
    assert_eq!(a.told, alone(&single, &prompt(0, 9), &drawn(0), 7));
}

#[test]
fn who_ends_while_steps_are_under_way_leaves_the_others_alone() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let several = generator(&device, "llama", GeneratorOptions::new().batch(3).choose_on(ChooseOn::Device));
    let single = generator(&device, "llama", GeneratorOptions::new());
    let greedy = Sampling::greedy();
    let mut texts: Vec<Text> = [60, 30, 5]
        .iter()
        .enumerate()
        .map(|(number, length)| Text::new(begun(&several, &prompt(number, *length)), &greedy))
        .collect();
    // The first is full after four tokens, and asks again and again.
    for step in 0..9 {
        let mut members: Vec<_> =
            texts.iter_mut().map(|text| (&mut text.sequence, &mut text.sampler)).collect();
        let next = several.step(&mut members, &options).unwrap();
        assert_eq!(next[0] == Next::Stop(Stop::Context), step >= 4, "step {step}: {next:?}");
        for (text, next) in texts.iter_mut().zip(next) {
            if let Next::Token(token) = next {
                text.told.push(token);
            }
        }
        // A step that is ended while others are under way changes nothing.
        let cancel = CancelToken::new();
        cancel.cancel();
        let mut members: Vec<_> =
            texts.iter_mut().map(|text| (&mut text.sequence, &mut text.sampler)).collect();
        let failed = several.step(&mut members, &RunOptions::new().cancel(&cancel)).unwrap_err();
        assert_eq!(failed.kind(), ErrorKind::Cancelled);
    }
    for (number, (text, length)) in texts.iter().zip([60, 30, 5]).enumerate() {
        let wanted = alone(&single, &prompt(number, length), &greedy, if number == 0 { 4 } else { 9 });
        assert_eq!(text.told, wanted, "text {number}");
    }
    // The seat of one that goes while the device works on it is another's, who finds nothing.
    drop(texts.remove(1));
    let mut late = Text::new(begun(&several, &prompt(7, 11)), &greedy);
    write(&several, &mut [&mut late, &mut texts[1]], 6);
    assert_eq!(late.told, alone(&single, &prompt(7, 11), &greedy, 6));
    assert_eq!(texts[1].told, alone(&single, &prompt(2, 5), &greedy, 15));
}

#[test]
fn ten_sequences_take_a_step_of_eight_and_one_of_two() {
    let Some(device) = device() else { return };
    let greedy = Sampling::greedy();
    let several = generator(&device, "llama", GeneratorOptions::new().batch(10));
    let single = generator(&device, "llama", GeneratorOptions::new());
    let mut texts: Vec<Text> =
        (0..10).map(|number| Text::new(begun(&several, &prompt(number, 3 + number)), &greedy)).collect();
    write(&several, &mut texts.iter_mut().collect::<Vec<_>>(), 4);
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(text.told, alone(&single, &prompt(number, 3 + number), &greedy, 4), "text {number}");
    }
}
