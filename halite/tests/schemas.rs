//! Answers that follow a schema, wherever their tokens are chosen.

use std::ops::ControlFlow;

use halite::{ChooseOn, Generator, GeneratorOptions, JsonSchema, Next, RunOptions, Sampler, Sampling};

use crate::common::{builder, device, repo};

/// Whether tokens are a JSON object, or the beginning of one.
fn is_object(generator: &Generator, tokens: &[u32]) -> bool {
    let bytes: Vec<u8> = tokens.iter().flat_map(|token| generator.bytes(*token)).collect();
    match serde_json::from_slice::<serde_json::Value>(&bytes) {
        Ok(value) => value.is_object(),
        Err(error) => error.is_eof() && bytes.trim_ascii_start().first().is_none_or(|byte| *byte == b'{'),
    }
}

#[test]
fn answers_that_have_to_be_objects_are() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    for place in [ChooseOn::Host, ChooseOn::Device] {
        let given = GeneratorOptions::new().context(64).batch(2).choose_on(place);
        let model = repo("compiler/tests/data/gguf/llama.gguf");
        let generator = builder(&device).model(model).generator(given).unwrap();
        let begun = || {
            let mut sequence = generator.sequence().unwrap();
            sequence.prompt(&[5, 6, 7], &options).unwrap();
            sequence
        };
        for sampling in
            [Sampling::greedy(), Sampling { temperature: 1.5, top_k: 0, seed: 3, ..Sampling::default() }]
        {
            let (mut alone, mut told) = (begun(), Vec::new());
            let mut sampler = generator.json_sampler(sampling.clone());
            let each = |piece: &halite::Piece| {
                told.push(piece.token);
                ControlFlow::Continue(())
            };
            alone.generate(&mut sampler, 40, &options, each).unwrap();
            assert!(!told.is_empty() && is_object(&generator, &told), "{}", generator.text(&told));
            // The same in steps with a sequence that may write what it likes.
            let (mut own, mut other) = (begun(), begun());
            let mut samplers = [generator.json_sampler(sampling.clone()), Sampler::new(Sampling::greedy())];
            let [json, plain] = &mut samplers;
            let mut steps = Vec::new();
            while steps.len() < told.len() {
                let next = generator.step(&mut [(&mut own, &mut *json), (&mut other, &mut *plain)], &options);
                match next.unwrap()[0] {
                    Next::Token(token) => steps.push(token),
                    _ => break,
                }
            }
            assert!(!steps.is_empty() && is_object(&generator, &steps), "{}", generator.text(&steps));
        }
    }
}

/// The device draws of all tokens, and the host looks at each: texts are those of the host, with the same random numbers.
#[test]
fn devices_write_by_schemas_what_the_host_writes() {
    let Some(device) = device() else { return };
    let options = RunOptions::new();
    let schemas = [
        JsonSchema::object(),
        // Nearly all that a model of random weights likes may come.
        JsonSchema::parse(r#"{"type": "string"}"#).unwrap(),
        JsonSchema::parse(r#"{"type": "array", "items": {"enum": ["in the", 12, 1, null]}, "minItems": 3}"#)
            .unwrap(),
    ];
    let drawn =
        |seed| Sampling { temperature: 1.5, top_k: 60, top_p: 1.0, min_p: 0.0, seed, ..Sampling::default() };
    // A state cannot be cut back: there the host chooses.
    for name in ["llama", "lfm2"] {
        let [host, other] = [ChooseOn::Host, ChooseOn::Device].map(|place| {
            let given = GeneratorOptions::new().context(96).choose_on(place);
            let model = repo(&format!("compiler/tests/data/gguf/{name}.gguf"));
            builder(&device).model(model).generator(given).unwrap()
        });
        let written = |generator: &Generator, schema: &JsonSchema, sampling: &Sampling| {
            let mut sequence = generator.sequence().unwrap();
            sequence.prompt(&[5, 6, 7], &options).unwrap();
            let mut sampler = generator.schema_sampler(sampling.clone(), schema);
            let (mut told, mut stops) = (Vec::new(), Vec::new());
            // To its end, or until the caller has enough, and on from there, with logits and without.
            for (most, enough) in [(9, 20), (20, 5), (1, 1), (30, 40)] {
                let before = told.len();
                let stop = sequence.generate(&mut sampler, most, &options, |piece| {
                    told.push(piece.token);
                    if told.len() - before == enough {
                        ControlFlow::Break(())
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                stops.push(stop.unwrap());
                assert_eq!(sequence.tokens()[3..], told);
            }
            (generator.text(&told), told, stops, sampler.fraction())
        };
        for schema in &schemas {
            for sampling in [Sampling::greedy(), drawn(1), drawn(2), drawn(3)] {
                let wanted = written(&host, schema, &sampling);
                assert!(!wanted.1.is_empty());
                assert_eq!(written(&other, schema, &sampling), wanted, "{name} {sampling:?}");
            }
        }
    }
}
